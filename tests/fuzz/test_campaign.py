"""A long run in slices: what was done is kept, and nothing is done twice."""

from __future__ import annotations

from tests.fuzz import campaign as module
from tests.fuzz.campaign import Campaign, Counts


def test_it_goes_on_from_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SLICE_RUNS", 100)
    monkeypatch.setattr(module, "FLURRY_SLICE_RUNS", 1000)
    goals = {"batch": 150, "batch-flurry": 1000}
    first = Campaign(tmp_path, goals, "plain")
    assert first.begin() == ("batch", 100, 1)
    assert first.begin() == ("batch-flurry", 1000, 2)
    assert first.begin() == ("batch", 50, 3)
    assert first.begin() is None  # all is under way
    first.end("batch", 100, 100, 1.5, 50)
    first.end("batch-flurry", 1000, 400, 2.0, 60)  # its time was over
    again = Campaign(tmp_path, goals, "address,undefined")
    assert again.begin() == ("batch", 50, 3)
    assert again.begin() == ("batch-flurry", 600, 4)
    again.end("batch", 50, 50, 1.0, 70)
    again.end("batch-flurry", 600, 640, 1.0, 70)
    assert Campaign(tmp_path, goals, "plain").begin() is None
    *rows, last = Campaign(tmp_path, goals, "plain").lines()
    assert [row.split()[:3] for row in rows] == [
        ["address,undefined", "batch", "50"],
        ["address,undefined", "batch-flurry", "640"],
        ["plain", "batch", "100"],
        ["plain", "batch-flurry", "400"],
    ]
    assert last == "together 1,190 of 1,150 executions"


def test_a_slice_that_fell_short_is_made_up_for(tmp_path):
    campaign = Campaign(tmp_path, {"frame": 10}, "plain")
    assert campaign.begin() == ("frame", 10, 1)
    assert campaign.begin() is None
    campaign.end("frame", 10, 4, 0.1, 50)
    assert campaign.begin() == ("frame", 6, 2)


def test_a_find_is_kept_with_what_was_said(tmp_path):
    campaign = Campaign(tmp_path, {}, "plain")
    campaign.keep_find("batch", b"\x01", "why")
    campaign.keep_find("batch", b"\x02", "why not")
    assert (tmp_path / "finds" / "batch-1").read_bytes() == b"\x02"
    assert (tmp_path / "finds" / "batch-0.txt").read_text() == "why"


def test_counts_are_there_however_the_process_ends(tmp_path):
    path = tmp_path / "counts"
    path.write_bytes(bytes(Counts.BYTES))
    counts = Counts(path)
    counts.add(64)
    counts.add(1)
    assert memoryview(path.read_bytes()).cast("Q")[0] == 65
