from pathlib import Path

import pytest

from pyspark_kafkaproto.devbroker import KafkaTools
from pyspark_kafkaproto.errors import DevBrokerFailed


@pytest.fixture
def tools(fake_java, fake_kafka):
    return KafkaTools("broker:9092")


@pytest.fixture
def old_tools(fake_java, fake_kafka):
    (fake_kafka / "libs" / "kafka_2.13-4.3.0.jar").rename(
        fake_kafka / "libs" / "kafka_2.13-3.9.1.jar"
    )
    return KafkaTools("broker:9092")


@pytest.mark.slow
def test_a_tool_gets_its_input_and_gives_its_output(tools):
    assert tools.run_tool("some.Tool", stdin="ünput") == "ran some.Tool on 'ünput'\n"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["crash", "logs an error"])
def test_a_tool_that_failed_is_an_error_with_what_it_said(tools, fake_java, mode):
    fake_java.behave(mode)
    with pytest.raises(DevBrokerFailed, match=r"some\.Tool a b: exit code \d:\n.*ran some\.Tool"):
        tools.run_tool("some.Tool", "a", "b")


def test_topics_are_made_with_partitions_and_configs(tools, fake_java):
    tools.create_topic("t", 4, configs={"retention.ms": "-1"}, if_not_exists=True)
    assert fake_java.calls() == [
        "org.apache.kafka.tools.TopicCommand broker:9092 t 4 1 retention.ms=-1"
    ]


def test_the_console_producer_sends_all_lines_at_once(tools, monkeypatch):
    ran = []
    monkeypatch.setattr(tools, "run_tool", lambda *words, **more: ran.append((words, more)))
    tools.produce("t", ["a", "b"], key_separator="|", properties={"compression.type": "zstd"})
    [(words, more)] = ran
    assert more == {"stdin": "a\nb\n"}
    assert words[0] == "org.apache.kafka.tools.ConsoleProducer"
    assert "--compression-codec zstd --command-property acks=-1" in " ".join(words)
    # The tool itself tries three times in 0.3 s: partitions just made have no leader by then.
    assert "--command-property retries=2147483647" in " ".join(words)
    assert words[-4:] == (
        *("--reader-property", "parse.key=true"),
        *("--reader-property", "key.separator=|"),
    )


def test_options_of_older_tools_have_their_older_names(old_tools, monkeypatch):
    ran = []
    monkeypatch.setattr(old_tools, "run_tool", lambda *words, **more: ran.append(words))
    old_tools.produce("t", ["a|b"], key_separator="|")
    old_tools.produce_perf("t", 10, 100)
    console, perf = ran
    assert console[0] == "kafka.tools.ConsoleProducer"
    assert "--property" in console
    assert "--producer-property" in console
    assert "--producer-props bootstrap.servers=broker:9092" in " ".join(perf)


def test_the_perf_producer_takes_a_size_or_given_payloads(tools, monkeypatch):
    ran = []

    def run(*words, **more):
        given = "--payload-file" in words
        payload = Path(words[words.index("--payload-file") + 1]).read_text() if given else None
        ran.append((words, payload, more["jvm_options"]))

    monkeypatch.setattr(tools, "run_tool", run)
    tools.produce_perf("t", 5, 100, compression="lz4")
    tools.produce_perf("t", 5, 100, payload_lines=["one", "two"])
    (sized, _, options), (given, payload, _) = ran
    assert "--record-size 100" in " ".join(sized)
    assert "compression.type=lz4" in sized
    assert "--record-size" not in given
    assert payload == "one\ntwo"
    assert options == ()  # its speed matters: the optimising compiler stays on
