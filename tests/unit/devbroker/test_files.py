import os

from pyspark_kafkaproto.devbroker.files import FileLock, write_whole


def test_one_holder_at_a_time(tmp_path):
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.try_acquire()
    assert not second.try_acquire()
    first.release()
    assert second.try_acquire()
    second.release()


def test_a_lock_ends_with_its_process(tmp_path):
    lock = FileLock(tmp_path / "lock")
    child = os.fork()
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
    child = os.fork()
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
