"""spark-submit.sh and tools/prepare-venv.sh on a machine of paper: a PATH of nothing but fakes."""

import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.examples import first
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "pyspark_kafkaproto"
# Whatever has native sources: the decoder is of several parts, and is nothing without one of them.
NATIVE = [
    str(source.relative_to(PACKAGE).with_suffix(".cpython-311.so"))
    for source in sorted(PACKAGE.glob("*/*.pyx"))
]
COMMANDS = (
    *("bash", "cat", "cksum", "cmp", "cp", "dirname", "env", "find", "head", "ls", "mkdir", "mv"),
    *("rm", "sed", "sh", "sleep", "sort", "touch", "tr", "wc"),
)
# Knows the few calls that the scripts make, and does what it is told by files in $FAKE.
PYTHON = """#!/bin/sh
echo "$*" >>"$FAKE/calls"
case "$*" in
    "-c import sys; sys.exit(sys.version_info"*) [ ! -e "$FAKE/too old" ] ;;
    "-c import ensurepip, venv") [ ! -e "$FAKE/no venv" ] ;;
    "-V" | "--version")
        if [ -e "$FAKE/too old" ]; then echo Python 3.9.2; else echo Python 3.11.9; fi
        ;;
    "-m venv "*)
        [ ! -e "$FAKE/read-only" ] || { echo "Error: [Errno 30] Read-only" >&2; exit 1; }
        mkdir -p "$3/bin"
        touch "$3/pyvenv.cfg"
        [ ! -e "$FAKE/cut in venv" ] || exit 130
        cp "$0" "$3/bin/python"
        cp "$FAKE/spark-submit" "$3/bin/spark-submit"
        ;;
    "-m pip --version") ;;
    "-m pip install "*)
        trap 'exit 1' INT  # as pip does
        while [ -e "$FAKE/slow pip" ]; do sleep 0.02; done
        [ ! -e "$FAKE/cut in pip" ] || exit 1
        [ ! -e "$FAKE/no kernel" ] || exit 0
        package="${0%/bin/python}/lib/python3.11/site-packages/pyspark_kafkaproto"
        while read -r native; do
            mkdir -p "$package/${native%/*}"
            wc -l <"$FAKE/calls" >"$package/$native"
        done <"$FAKE/native"
        ;;
    "-m compileall "*)
        trap 'exit 1' INT  # as it does
        touch "$FAKE/compiles"
        while [ -e "$FAKE/slow compileall" ]; do sleep 0.02; done
        ;;
    "-c "*'find_spec("pyspark")'*) echo "${0%/bin/python}/its pyspark" ;;
    "-c import fcntl"*) exec "$REAL_PYTHON" "$@" ;;
    *"/tools/compile_spark_zip.py") [ ! -e "$FAKE/no zip" ] ;;
    *) echo "unknown call: $*" >&2; exit 99 ;;
esac
"""
JAVA = """#!/bin/sh
[ ! -e "$FAKE/no java" ] || exit 127
if [ -e "$FAKE/old java" ]; then v=1.8.0_392; else v=17.0.15; fi
echo "openjdk version \\"$v\\" 2025-04-15" >&2
"""
SPARK_SUBMIT = """#!/bin/sh
echo "${LC_ALL:-${LC_CTYPE:-$LANG}}" >"$FAKE/locale"
echo "submit $*"
echo "conf ${SPARK_CONF_DIR#"$ROOT"/} home ${SPARK_HOME#"$ROOT"/} python ${PYSPARK_PYTHON#"$ROOT"/}"
exit 7
"""


class Machine:
    """A checkout of its own, and the fakes on PATH."""

    def __init__(self, folder, name="a checkout"):  # a path with a blank in it is a path
        self.root = folder / name
        self.fake = folder / "fake"
        self.bin = folder / "bin"
        package = self.root / "pyspark_kafkaproto"
        self.native = [package / name for name in NATIVE]
        rooms = {file.parent for file in self.native}
        for made in (self.root / "tools", *rooms, self.fake, self.bin):
            made.mkdir(parents=True)
        (self.fake / "native").write_text("".join(f"{name}\n" for name in NATIVE))
        for file in ("spark-submit.sh", "setup.cfg", "setup.py", "pyproject.toml"):
            shutil.copy(ROOT / file, self.root)
        shutil.copy(ROOT / "tools" / "prepare-venv.sh", self.root / "tools")
        (self.root / "pyspark_kafkaproto" / "__init__.py").write_text("# a package\n")
        for command in COMMANDS:
            (self.bin / command).symlink_to(shutil.which(command))
        for path, text in (
            (self.bin / "python3", PYTHON),
            (self.bin / "java", JAVA),
            (self.fake / "spark-submit", SPARK_SUBMIT),
        ):
            path.write_text(text)
            path.chmod(0o755)

    def set(self, what, on=True):
        """Have a fake behave in the named way, or no longer."""
        file = self.fake / what
        file.touch() if on else file.unlink()

    def environ(self):
        """What the scripts are started with."""
        return {
            "PATH": str(self.bin),
            "FAKE": str(self.fake),
            "ROOT": str(self.root),
            "REAL_PYTHON": sys.executable,
            "SPARK_HOME": "/another/spark",
        }

    def run(self, *arguments, **environ):
        """spark-submit.sh with these arguments: exit code, standard output, standard error."""
        done = subprocess.run(
            ["bash", str(self.root / "spark-submit.sh"), *arguments],
            env=self.environ() | environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def calls(self):
        """What Python was called for so far."""
        file = self.fake / "calls"
        return file.read_text().splitlines() if file.exists() else []

    def is_waiting(self):
        """Whether a run has found another one at work, and waits for its end."""
        return any("LOCK_EX)" in call for call in self.calls())

    def installs(self):
        """The requirement of each `pip install` so far."""
        calls = self.calls()
        return [call.rpartition("[")[2].rstrip("]") for call in calls if "pip install" in call]


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.mark.slow
def test_sparks_archive_is_compiled_once_and_a_failure_of_that_stops_nothing(machine):
    machine.set("no zip")
    code, _, err = machine.run("my job.py")
    assert code == 7
    assert "pyspark.zip has no bytecode" in err
    machine.run("my job.py")
    calls = (machine.fake / "calls").read_text().splitlines()
    assert sum("compile_spark_zip.py" in call for call in calls) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "python"), [("checkout", ".venv/bin/python"), ("a checkout", "python")]
)
def test_any_job_is_run_with_conf_and_the_venvs_own_spark(tmp_path, name, python):
    """Spark looks for its Python by a shell, as a word of it."""
    code, out, _ = Machine(tmp_path, name).run("--master", "local[1]", "my job.py", "a")
    assert code == 7  # spark-submit's own
    assert out.splitlines() == [
        "submit --master local[1] my job.py a",
        f"conf conf home .venv/its pyspark python {python}",
    ]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere Java takes names as they are")
@pytest.mark.parametrize(
    ("given", "used"),
    first(
        2,
        [
            ({}, "C.UTF-8"),
            ({"LANG": "de_DE.UTF-8"}, "de_DE.UTF-8"),
            ({"LANG": "POSIX"}, "C.UTF-8"),
            ({"LANG": "de_DE.UTF-8", "LC_ALL": "C"}, "C.UTF-8"),
            ({"LC_CTYPE": "C.utf8"}, "C.utf8"),
        ],
    ),
)
def test_java_can_read_file_names_where_no_locale_is_set(machine, given, used):
    """As cron and containers start it: Java found no class below a folder `jürgen`."""
    machine.run("my job.py", **given)
    assert (machine.fake / "locale").read_text() == f"{used}\n"


@pytest.mark.slow
def test_without_arguments_it_is_the_main_job(machine):
    _, out, _ = machine.run()
    main_job = "pyspark_kafkaproto/jobs/offset_ranges.py"
    assert out.splitlines()[0] == f"submit {machine.root}/{main_job}"


@pytest.mark.slow
def test_the_second_run_installs_nothing_and_says_nothing(machine):
    _, _, first = machine.run()
    assert "making" in first
    assert "installing" in first
    _, _, second = machine.run()
    assert second == ""
    assert machine.installs() == ["cli,spark"]


@pytest.mark.parametrize(
    "changed",
    [
        "pyspark_kafkaproto/new.py",
        pytest.param("setup.cfg", marks=pytest.mark.slow),
        pytest.param("pyproject.toml", marks=pytest.mark.slow),
    ],
)
def test_changed_sources_are_installed_anew(machine, changed):
    machine.run()
    with (machine.root / changed).open("a") as file:
        file.write("# changed\n")
    machine.run()
    assert len(machine.installs()) == 2


@pytest.mark.slow
def test_compiled_leftovers_are_no_change(machine):
    machine.run()
    cache = machine.root / "pyspark_kafkaproto" / "__pycache__"
    cache.mkdir()
    (cache / "x.pyc").touch()
    machine.run()
    assert len(machine.installs()) == 1


@pytest.mark.parametrize(
    "where", [pytest.param("cut in venv", marks=pytest.mark.slow), "cut in pip"]
)
def test_an_interrupted_first_run_is_made_good_by_the_next(machine, where):
    machine.set(where)
    code, out, _ = machine.run()
    assert code != 0
    assert out == ""
    machine.set(where, on=False)
    code, out, _ = machine.run()
    assert (code, out[:6]) == (7, "submit")
    machine.run()
    assert machine.installs()[-1:] == ["cli,spark"]
    assert len(machine.installs()) == (1 if where == "cut in venv" else 2)


@pytest.mark.slow
def test_of_two_first_runs_one_waits_for_the_other(machine):
    """The second took the environment that the first was filling for one that was cut off."""
    machine.set("slow pip")
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(machine.run)
        until(machine.installs)
        second = pool.submit(machine.run)
        # It installs into the same environment, or waits.
        until(lambda: len(machine.installs()) > 1 or machine.is_waiting())
        machine.set("slow pip", on=False)
        results = [first.result(), second.result()]
    assert [code for code, _, _ in results] == [7, 7]
    assert "waiting" in results[1][2]
    assert machine.installs() == ["cli,spark"]


@pytest.mark.slow
def test_a_run_waits_for_what_a_killed_one_is_still_installing(machine):
    machine.set("slow pip")
    script = str(machine.root / "spark-submit.sh")
    with subprocess.Popen(["bash", script], env=machine.environ()) as killed:
        until(machine.installs)
        killed.send_signal(signal.SIGKILL)
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(machine.run)
        until(lambda: len(machine.installs()) > 1 or machine.is_waiting())
        machine.set("slow pip", on=False)
        code, _, err = second.result()
    assert code == 7
    assert "waiting" in err


def test_ctrl_c_while_it_installs_is_no_failed_install(machine):
    """pip ends with 1 then, and it was asked whether a package index is reached."""
    machine.set("slow pip")
    script = str(machine.root / "spark-submit.sh")
    started = {"env": machine.environ(), "start_new_session": True, "stderr": subprocess.PIPE}
    with subprocess.Popen(["bash", script], text=True, **started) as stopped:
        until(machine.installs)
        os.killpg(stopped.pid, signal.SIGINT)
        _, err = stopped.communicate(timeout=30)
    assert stopped.returncode == 130
    assert "PIP_INDEX_URL" not in err
    machine.set("slow pip", on=False)
    assert machine.run()[0] == 7
    assert len(machine.installs()) == 2


@pytest.mark.slow
def test_ctrl_c_while_it_compiles_starts_no_job(machine):
    machine.set("slow compileall")
    script = str(machine.root / "spark-submit.sh")
    started = {"env": machine.environ(), "start_new_session": True, "stdout": subprocess.PIPE}
    with subprocess.Popen(["bash", script], text=True, **started) as stopped:
        until((machine.fake / "compiles").exists)
        os.killpg(stopped.pid, signal.SIGINT)
        out, _ = stopped.communicate(timeout=30)
    assert (stopped.returncode, out) == (130, "")
    machine.set("slow compileall", on=False)
    assert machine.run()[0] == 7


@pytest.mark.slow
def test_a_failed_update_leaves_no_marker_of_the_old_state(machine):
    machine.run()
    (machine.root / "setup.cfg").write_text("changed")
    machine.set("cut in pip")
    machine.run()
    machine.set("cut in pip", on=False)
    shutil.copy(ROOT / "setup.cfg", machine.root)  # back to what the marker had said
    machine.run()
    assert len(machine.installs()) == 3


@pytest.mark.slow
def test_a_venv_whose_python_is_gone_is_made_anew(machine):
    machine.run()
    python = machine.root / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to("/nowhere/python3")
    code, _, err = machine.run()
    assert code == 7
    assert "making" in err


@pytest.mark.slow
def test_a_folder_that_is_no_venv_is_not_removed(machine):
    (machine.root / ".venv").mkdir()
    (machine.root / ".venv" / "mine").touch()
    code, _, err = machine.run()
    assert code == 1
    assert "is not a Python environment: move it away" in err
    assert (machine.root / ".venv" / "mine").exists()


@pytest.mark.slow
def test_what_the_tests_installed_stays_when_the_sources_change(machine):
    prepare = f'set -eu; root="{machine.root}"; . "$root/tools/prepare-venv.sh"; require_tools; '
    environ = {"PATH": str(machine.bin), "FAKE": str(machine.fake)}
    command = ["bash", "-c", prepare + "prepare_venv spark test lint"]
    subprocess.run(command, env=environ, check=True, capture_output=True)
    machine.run()  # `cli` was not there
    (machine.root / "setup.py").write_text("changed")
    machine.run()
    assert machine.installs() == ["lint,spark,test", "cli,lint,spark,test", "cli,lint,spark,test"]


@pytest.mark.parametrize(
    ("state", "line"),
    [
        ("too old", "Python 3.11 or later is needed (Python 3.9.2): install it (Debian: apt-get"),
        ("no venv", "Python's venv module is needed ("),
        ("old java", "Java 17 or later is needed (found Java 8): install it (Debian: apt-get"),
        ("no java", "Java 17 or later is needed (no java on PATH): install it (Debian: apt-get"),
    ],
)
def test_each_missing_thing_gets_one_line_before_anything_happens(machine, state, line):
    machine.set(state)
    code, out, err = machine.run()
    assert (code, out) == (1, "")
    assert err.startswith(line)
    assert err.count("\n") == 1
    assert "macOS: brew install" in err
    assert not (machine.root / ".venv").exists()


def test_a_working_directory_that_was_deleted_is_named(machine, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    program = 'cd "$1"; "$REAL_PYTHON" -c "import os; os.rmdir(\'$1\')"; exec bash "$2"'
    words = ["bash", "-c", program, "sh", str(gone), str(machine.root / "spark-submit.sh")]
    done = subprocess.run(words, env=machine.environ(), capture_output=True, text=True, check=False)
    said = "the working directory was deleted: change to one that is there (cd)"
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, said)


def test_all_missing_things_are_named_at_once(machine):
    machine.set("too old")
    machine.set("old java")
    _, _, err = machine.run()
    assert err.count("\n") == 2


def test_javas_home_is_asked_before_path(machine):
    home = machine.fake / "jdk"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    (home / "bin" / "java").chmod(0o755)
    _, _, err = machine.run(JAVA_HOME=str(home))
    assert "found Java 11" in err


@pytest.mark.slow
def test_a_home_of_java_without_java_is_named(machine):
    code, _, err = machine.run(JAVA_HOME="/nowhere")
    assert code == 1
    assert err.startswith("JAVA_HOME is /nowhere, where there is no bin/java: correct it, or unset")


@pytest.mark.slow
def test_an_install_that_fails_says_where_to_look(machine):
    machine.set("cut in pip")
    code, out, err = machine.run()
    assert (code, out) == (1, "")
    assert "PIP_INDEX_URL" in err.splitlines()[-1]


@pytest.mark.slow
def test_an_environment_that_cannot_be_made_says_what_to_do(machine):
    machine.set("read-only")
    code, _, err = machine.run()
    assert code == 1
    assert f"{machine.root}/.venv could not be made, see above: the checkout has to be on" in err
    assert machine.installs() == []


@pytest.mark.slow
def test_what_is_native_is_put_beside_the_sources_that_spark_finds_first(machine):
    machine.run()
    first = [beside.read_text() for beside in machine.native]
    (machine.root / "setup.py").write_text("changed")
    machine.run()
    for beside, before in zip(machine.native, first, strict=True):
        assert beside.read_text() != before
        beside.unlink()
    machine.run()
    assert all(beside.exists() for beside in machine.native)
    assert len(machine.installs()) == 2


@pytest.mark.slow
def test_what_is_native_and_was_not_built_leaves_no_old_one_beside_the_others(machine):
    """Of two builds in one process each would take the other's memory for its own."""
    machine.run()
    missing, *others = machine.native
    for installed in (machine.root / ".venv").glob(f"lib/*/site-packages/*/*/{missing.name}"):
        installed.rename(installed.with_suffix(".pyi"))  # what is no library stays
    other_python = others[0].with_name(others[0].name.replace("311", "312"))
    other_python.touch()
    machine.run()
    assert not missing.exists()
    assert all(beside.exists() for beside in (*others, other_python))


@pytest.mark.slow
def test_without_a_compiler_it_says_so_and_goes_on_without_an_old_kernel(machine):
    machine.set("no kernel")
    for old in machine.native:
        old.touch()
    code, _, err = machine.run()
    assert code == 7
    assert err.count("the kernel could not be compiled, so the pure-Python codec is used") == 1
    assert not any(old.exists() for old in machine.native)
    assert machine.run()[2] == ""  # from now on it is the driver that says so
    (machine.bin / "gcc").symlink_to("/bin/true")
    _, _, err = machine.run()
    assert "installing" in err  # now there is one


def test_the_scripts_are_plain_to_start():
    for name in ("spark-submit.sh", "tests/run.sh", ".ci/run"):
        assert os.access(ROOT / name, os.X_OK), name
    assert "tests/run.sh" in (ROOT / ".ci" / "run").read_text()
