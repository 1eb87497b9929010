import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from pyspark_kafkaproto.devbroker import DevBroker, broker, default_data_dir, find_running
from pyspark_kafkaproto.devbroker.running import ClusterFile
from pyspark_kafkaproto.errors import ConfigError, DevBrokerFailed
from pyspark_kafkaproto.net.ports import answers

pytestmark = pytest.mark.usefixtures("fake_java", "fake_kafka")


@pytest.fixture
def data_dir(tmp_path):
    folder = tmp_path / "its data"
    yield folder
    if running := find_running(folder):
        running.stop()


def _port(started):
    return int(started.bootstrap_servers.rpartition(":")[2])


@pytest.mark.slow
def test_it_runs_inside_the_with_and_leaves_nothing():
    with DevBroker() as started:
        folder, port = started._folder, _port(started)
        assert started.is_running
        assert answers("127.0.0.1", port)
        assert "Kafka Server started" in started.log_text()
    assert not started.is_running
    assert not answers("127.0.0.1", port)
    assert not folder.exists()


@pytest.mark.slow
def test_a_broker_whose_data_goes_is_not_waited_for(fake_java):
    """Three nodes that all end have no controller left: the last one waited 5 s for a new one."""
    fake_java.behave("stubborn")
    began = time.monotonic()
    with DevBroker():
        pass
    assert time.monotonic() - began < 15  # one that is asked to end is given 20 s


@pytest.mark.slow
def test_a_kept_folder_is_formatted_once_and_keeps_id_and_ports(fake_java, data_dir):
    with DevBroker(data_dir) as first:
        address, before = first.bootstrap_servers, ClusterFile.read(data_dir)
    with DevBroker(data_dir) as second:
        assert second.bootstrap_servers == address
    assert ClusterFile.read(data_dir) == before
    formats = [call for call in fake_java.calls() if call.startswith("kafka.tools.StorageTool")]
    assert len(formats) == 1
    assert before.cluster_id in formats[0]


@pytest.mark.slow
def test_an_earlier_port_that_someone_else_has_now_is_given_up(data_dir):
    with DevBroker(data_dir) as first:
        port = _port(first)
    with socket.create_server(("127.0.0.1", port)), DevBroker(data_dir) as second:
        assert _port(second) != port


@pytest.mark.slow
def test_a_port_taken_in_between_is_tried_again_with_others(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        offers = [[taken, *broker.free_ports(1)], broker.free_ports(2)]
        monkeypatch.setattr(broker, "free_ports", lambda count: offers.pop(0))
        with DevBroker() as started:
            assert _port(started) != taken
        assert offers == []


@pytest.mark.slow
def test_ports_that_are_always_taken_end_in_an_error(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        monkeypatch.setattr(broker, "free_ports", lambda count: [taken, taken + 1])
        with pytest.raises(DevBrokerFailed, match="Address already in use"):
            DevBroker().start()


@pytest.mark.slow
def test_three_nodes_have_an_address_each_and_die_alone():
    with DevBroker(nodes=3) as started:
        assert len(started.bootstrap_servers.split(",")) == 3
        started.kill(2)
        assert not started.is_running
        addresses = started.bootstrap_servers.split(",")
        alive = [answers("127.0.0.1", int(each.rpartition(":")[2])) for each in addresses]
        assert alive == [True, False, True]
        started.restart(2)
        assert started.is_running
        assert started.bootstrap_servers.split(",") == addresses
        assert started.log_text(2).count("Kafka Server started") == 2
        with pytest.raises(ConfigError, match="expected 1 to 3"):
            started.kill(4)


@pytest.mark.slow
def test_a_crash_shows_the_log_from_the_first_error(fake_java):
    fake_java.behave("crash")
    with pytest.raises(DevBrokerFailed) as failed:
        DevBroker().start()
    assert "ended with exit code 1" in str(failed.value)
    assert "ERROR Exiting Kafka due to fatal exception: no luck\n\tat here" in str(failed.value)
    assert "getting up" not in str(failed.value)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["misconfigured", "misconfigured from the start"])
def test_a_refused_configuration_leads_with_what_kafka_says_of_it(fake_java, mode):
    fake_java.behave(mode)
    with pytest.raises(DevBrokerFailed) as failed:
        DevBroker().start()
    first, *rest = str(failed.value).splitlines()
    assert ": Invalid value abc; " in first
    assert "\tat here" in rest


@pytest.mark.slow
def test_a_start_that_hangs_ends_at_its_deadline_with_the_log(fake_java, data_dir):
    fake_java.behave("silent")
    with pytest.raises(DevBrokerFailed, match=r"node 1 was not ready within 0\.5 s; it logged"):
        DevBroker(data_dir, start_timeout_s=0.5).start()
    assert find_running(data_dir) is None


@pytest.mark.slow
def test_a_format_that_fails_shows_why_and_is_done_anew_next_time(fake_java, data_dir):
    fake_java.behave("unformattable")
    with pytest.raises(DevBrokerFailed, match=r"could not format .*\nException in thread main"):
        DevBroker(data_dir).start()
    fake_java.behave("ok")
    with DevBroker(data_dir):
        pass
    assert sum("StorageTool" in call for call in fake_java.calls()) == 2


@pytest.mark.slow
def test_two_owners_on_one_folder_are_one_too_many(data_dir):
    with (
        DevBroker(data_dir) as first,
        pytest.raises(
            DevBrokerFailed, match=f"another process runs a broker .at {first.bootstrap_servers}"
        ),
    ):
        DevBroker(data_dir).start()


def test_a_folder_that_kafka_would_take_for_several_is_refused(tmp_path):
    """Its log.dirs is a list: the data went to `Meyer`, and to a folder below the working one."""
    with pytest.raises(ConfigError, match=r"data_dir.*Meyer, Anna.*without a comma"):
        DevBroker(tmp_path / "Meyer, Anna" / "data").start()
    assert list(tmp_path.glob("Meyer*")) == []


@pytest.mark.slow
def test_a_start_that_the_system_refuses_is_said_as_any_other(data_dir, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "cluster.json")

    monkeypatch.setattr(ClusterFile, "write", full)
    with pytest.raises(DevBrokerFailed, match=r"No space left on device: 'cluster\.json'"):
        DevBroker(data_dir).start()


@pytest.mark.slow
def test_a_broker_is_started_once():
    with DevBroker() as started, pytest.raises(DevBrokerFailed, match="was started already"):
        started.start()


def test_before_its_start_it_has_no_address():
    with pytest.raises(DevBrokerFailed, match="was not started"):
        _ = DevBroker().bootstrap_servers


@pytest.mark.slow
def test_a_folder_of_other_size_or_of_a_newer_kafka_is_refused(data_dir, fake_kafka):
    with DevBroker(data_dir):
        pass
    with pytest.raises(ConfigError, match="holds a cluster of 1"):
        DevBroker(data_dir, nodes=3).start()
    libs = fake_kafka / "libs"
    (libs / "kafka_2.13-4.3.0.jar").rename(libs / "kafka_2.13-3.9.1.jar")
    with pytest.raises(ConfigError, match=r"was written by 4\.3\.0"):
        DevBroker(data_dir).start()


def _run_in_another_process(data_dir, after_start):
    program = (
        "import sys, time\n"
        "from pyspark_kafkaproto.devbroker import DevBroker\n"
        f"broker = DevBroker({str(data_dir)!r})\n"
        f"{after_start}\n"
        "print(broker.bootstrap_servers, flush=True)\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment, text=True
    )


@pytest.mark.slow
def test_a_detached_broker_outlives_its_starter_and_is_used_by_the_next(data_dir):
    with _run_in_another_process(data_dir, "broker.start(detached=True)") as starter:
        address = starter.stdout.readline().strip()
    found = find_running(data_dir)
    assert found.bootstrap_servers == address
    assert found.detached
    with DevBroker(data_dir) as used:
        assert used.bootstrap_servers == address
    assert find_running(data_dir) == found  # it was not ours to stop
    with pytest.raises(
        DevBrokerFailed,
        match=r"\(another num.partitions\).*kafkaproto devbroker stop --data-dir '.*/its data'",
    ):
        DevBroker(data_dir, properties={"num.partitions": "3"}).start()
    with pytest.raises(DevBrokerFailed, match=r"\(nodes 1, not 3\)"):
        DevBroker(data_dir, nodes=3).start()
    found.stop()
    assert find_running(data_dir) is None


@pytest.mark.slow
def test_who_is_refused_leaves_alone_what_is_left_of_a_cluster(data_dir):
    with _run_in_another_process(data_dir, "broker.start(detached=True)") as starter:
        starter.stdout.readline()
    found = find_running(data_dir)
    (data_dir / "node-2").mkdir()
    text = json.loads((data_dir / "cluster.json").read_text())
    text["ports"].append(text["ports"][0])  # a second node, which was killed
    (data_dir / "cluster.json").write_text(json.dumps(text))
    with pytest.raises(ConfigError, match="holds a cluster of 2"):
        DevBroker(data_dir).start()
    left = find_running(data_dir)
    assert left is not None
    assert left.pids == found.pids
    left.stop()


@pytest.mark.slow
def test_what_a_killed_run_left_running_is_ended_and_replaced(data_dir, monkeypatch):
    keep = "broker.start(); print(broker._nodes[0]._watchdog.pid, flush=True)"
    program = f"{keep}; print(broker.bootstrap_servers, flush=True); time.sleep(60)"
    with _run_in_another_process(data_dir, program) as starter:
        watchdog = int(starter.stdout.readline())
        address = starter.stdout.readline().strip()
        os.kill(watchdog, signal.SIGKILL)
        starter.kill()
    orphan = find_running(data_dir)
    assert orphan is not None
    with DevBroker(data_dir) as started:
        assert started.bootstrap_servers == address
        assert find_running(data_dir).pids != orphan.pids


@pytest.mark.slow
def test_a_detached_start_that_was_killed_half_way_is_made_anew(fake_java, data_dir):
    fake_java.behave("silent")
    with _run_in_another_process(data_dir, "broker.start(detached=True)") as starter:
        while find_running(data_dir) is None:
            assert starter.poll() is None
        starter.kill()
    fake_java.behave("ok")
    with DevBroker(data_dir) as started:
        assert answers("127.0.0.1", _port(started))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "detached"), [("start_watchdog", False), ("ProcessId.of", True), ("write_whole", True)]
)
def test_a_start_that_is_killed_at_any_step_leaves_no_broker_behind(
    fake_java, data_dir, step, detached
):
    """It would hold Kafka's own lock on the data, and no start would know of it."""
    program = (
        "import os, signal; from pyspark_kafkaproto.devbroker import node; "
        f"node.{step} = lambda *_: os.kill(os.getpid(), signal.SIGKILL); "
        f"broker.start(detached={detached})"
    )
    with _run_in_another_process(data_dir, program) as starter:
        assert starter.wait(30) == -signal.SIGKILL
    with DevBroker(data_dir) as started:
        assert started.is_running
    assert sum(call.startswith("kafka.Kafka ") for call in fake_java.calls()) == 1


@pytest.mark.slow
def test_a_stale_process_file_stops_nobody(data_dir):
    with DevBroker(data_dir):
        pass
    (data_dir / "node-1" / "process.json").write_text(f'{{"pid": {os.getpid()}, "began": "then"}}')
    with DevBroker(data_dir) as started:
        assert started.is_running


@pytest.mark.slow
def test_stop_kills_what_does_not_end(fake_java, monkeypatch, data_dir):
    monkeypatch.setattr("pyspark_kafkaproto.devbroker.node._STOP_GRACE_S", 0.3)
    fake_java.behave("stubborn")
    with DevBroker(data_dir):
        pass
    assert find_running(data_dir) is None


def test_the_default_folder_is_the_users_state(tmp_path, monkeypatch):
    assert default_data_dir() == tmp_path / "state" / "pyspark-kafkaproto" / "devbroker"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/home/anna")
    assert str(default_data_dir()) == "/home/anna/.local/state/pyspark-kafkaproto/devbroker"
