"""Stands in for java: `bin/java` of a fake JAVA_HOME. See conftest.py."""

import pathlib
import sys

HOME = pathlib.Path(__file__).resolve().parent.parent


def words_without_options(arguments):
    words = iter(arguments)
    for word in words:
        if word in ("-cp", "-jar"):
            next(words)
        elif not word.startswith("-"):
            yield word


def serve(properties, mode):
    if mode == "crash":
        print("12:00:00 INFO getting up")
        print("12:00:01 ERROR Exiting Kafka due to fatal exception: no luck\n\tat here")
        sys.exit(1)
    if mode == "misconfigured":
        print(
            "12:00:01 ERROR Fatal error during broker startup\n"
            "org.apache.kafka.common.config.ConfigException: Invalid value abc\n\tat here"
        )
        sys.exit(1)
    import signal
    import socket

    listening = []
    for address in properties["listeners"].split(",") if mode != "silent" else ():
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", int(address.rpartition(":")[2])))
        except OSError as error:
            print(f"12:00:00 ERROR java.net.BindException: Address already in use ({error})")
            sys.exit(1)
        sock.listen()
        listening.append(sock)
    if mode == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if mode != "silent":
        print("12:00:00 INFO Kafka Server started", flush=True)
    while True:
        signal.pause()


def hang():
    import os
    import signal

    (HOME / "hanging").write_text(str(os.getpid()))
    signal.pause()


def fetch(arguments, mode):
    module, version = arguments[arguments.index("-dependency") + 2 :][:2]
    print(f"\tfound org.apache.kafka#{module};{version} in public")
    if mode == "crash":
        print(f"\t\t:: org.apache.kafka#{module};{version}: not found")
        sys.exit(1)
    if mode == "silent":
        hang()
    print(".......... (1kB)")
    print(f"\t[SUCCESSFUL ] org.apache.kafka#{module};{version}!{module}.jar(bundle) (3ms)")
    pattern = arguments[arguments.index("-retrieve") + 1]
    jar = pattern.replace("[artifact]-[revision].[ext]", f"{module}-{version}.jar")
    pathlib.Path(jar).parent.mkdir(parents=True)
    pathlib.Path(jar).touch()


def main(arguments):
    mode_file = HOME / "mode"
    mode = mode_file.read_text() if mode_file.exists() else "ok"
    if arguments == ["-version"]:
        sys.exit(print('openjdk version "17.0.15" 2025-04-15'))
    words = list(words_without_options(arguments))
    with (HOME / "calls").open("a") as calls:
        calls.write(" ".join(words) + "\n")
    if "-dependency" in arguments:
        fetch(arguments, mode)
    elif words[0] == "kafka.tools.StorageTool":
        if mode == "unformattable":
            sys.exit("Exception in thread main: bad property")
        if mode == "misconfigured from the start":
            sys.exit('Exception in thread "main" a.b.ConfigException: Invalid value abc\n\tat here')
    elif words[0] == "kafka.Kafka":
        text = pathlib.Path(words[1]).read_text()
        serve(dict(line.split("=", 1) for line in text.splitlines()), mode)
    else:
        print(f"ran {words[0]} on {sys.stdin.read()!r}")
        if mode == "silent":
            hang()
        if mode == "logs an error":
            sys.exit(print("2026-01-01 ERROR could not send", file=sys.stderr))
        sys.exit(3 if mode == "crash" else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
