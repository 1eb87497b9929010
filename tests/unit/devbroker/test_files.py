import os

import pytest

from pyspark_kafkaproto.devbroker import DevBroker, find_running
from pyspark_kafkaproto.devbroker.files import FileLock, write_whole
from pyspark_kafkaproto.devbroker.node import Node
from pyspark_kafkaproto.errors import ConfigError, DevBrokerFailed
from tests.forks import fork


def test_one_holder_at_a_time(tmp_path):
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.try_acquire()
    assert not second.try_acquire()
    first.release()
    assert second.try_acquire()
    second.release()


def test_a_lock_ends_with_its_process(tmp_path):
    lock = FileLock(tmp_path / "lock")
    child = fork()
    if child == 0:
        lock.try_acquire()
        os._exit(0)  # without release, as a killed process
    os.waitpid(child, 0)
    assert lock.try_acquire()
    lock.release()


def test_a_released_lock_is_free_although_a_forked_process_has_the_file_open(tmp_path):
    lock = FileLock(tmp_path / "lock")
    assert lock.try_acquire()
    reading, writing = os.pipe()
    child = fork()
    if child == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    lock.release()
    other = FileLock(tmp_path / "lock")
    assert other.try_acquire()
    other.release()
    os.close(writing)
    os.close(reading)
    os.waitpid(child, 0)


def test_a_file_is_replaced_in_one_step_and_no_draft_stays(tmp_path):
    target = tmp_path / "state.json"
    write_whole(target, "old")
    write_whole(target, "new")
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("text", [b"", b"garbage", b"{}", b"[]", b"\xff", b"[" * 99_999])
def test_files_that_no_start_has_written_are_named(tmp_path, text):
    assert find_running(tmp_path) is None
    (tmp_path / "cluster.json").write_bytes(text)
    with pytest.raises(DevBrokerFailed, match=r"cluster\.json holds nothing .* another folder"):
        find_running(tmp_path)


def test_a_process_file_that_was_cut_off_is_named(tmp_path):
    node = Node(1, tmp_path)
    assert node.process is None
    (tmp_path / "process.json").touch()
    with pytest.raises(DevBrokerFailed, match=r"process\.json holds nothing"):
        _ = node.process


def test_a_folder_that_cannot_be_made_is_a_wrong_option():
    with pytest.raises(ConfigError, match=r"data_dir.*/dev/null/x.*a folder to write to"):
        DevBroker("/dev/null/x").start()
