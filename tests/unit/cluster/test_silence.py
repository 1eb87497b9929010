"""Who waits is told whom for: once, and not behind the end."""

from threading import Event

import pytest

from pyspark_kafkaproto.cluster import silence
from pyspark_kafkaproto.cluster.silence import waiting_aloud


def test_who_waits_for_long_is_told_once(monkeypatch):
    monkeypatch.setattr(silence, "QUIET_S", 0.0)
    told, is_told = [], Event()

    def tell(text):
        told.append(text)
        is_told.set()

    with waiting_aloud(lambda: "b:9092", tell):
        assert is_told.wait(10)
    assert told == ["no broker has answered yet, still trying b:9092"]


def test_who_has_an_answer_by_then_is_told_nothing(monkeypatch):
    monkeypatch.setattr(silence, "QUIET_S", 0.0)
    told, is_asked = [], Event()

    def nobody():
        is_asked.set()
        return ""

    with waiting_aloud(nobody, told.append):
        assert is_asked.wait(10)
    assert told == []


def test_whose_wait_is_over_is_told_nothing(monkeypatch):
    monkeypatch.setattr(silence, "QUIET_S", 3600.0)
    told = []
    with pytest.raises(ValueError, match="over"), waiting_aloud(lambda: "b", told.append):
        raise ValueError("over")
    assert told == []
