"""Tables and JSON whose texts come from anybody."""

import json
from io import StringIO

import pytest
from rich.console import Console
from rich.text import Text

from pyspark_kafkaproto.cli import output
from pyspark_kafkaproto.cli.output import drawn, json_text, table_text
from pyspark_kafkaproto.cli.record_format import as_json
from pyspark_kafkaproto.messages.create_topics import CreateTopicsResponse
from tests.unit.cluster.committing import FakeCoordinator
from tests.unit.cluster.fake_groups import listed

# A window's title, a red word and a row of its own; CSI in one character; a right-to-left mark.
EVIL = "x\x1b]0;t\x07\x1b[31m\nprod\tEmpty\r\x9b2J\u202e"


def test_a_table_has_a_line_for_each_row_whatever_is_in_it():
    rows = [{"group": EVIL, "members": [EVIL]}, {"group": "naïve ☃", "members": []}]
    head, evil, plain = table_text(rows, {"group": "Group", "members": "Members"}).splitlines()
    assert head.split() == ["Group", "Members"]
    assert evil.isprintable()
    assert evil.startswith(r"x\x1b]0;t\x07\x1b[31m\nprod\tEmpty\r\x9b2J\u202e")
    assert plain.split() == ["naïve", "☃", "-"]


@pytest.mark.parametrize(("done", "told"), [([], ""), ([{"topic": "a"}], '[{"topic": "a"}]\n')])
def test_rows_are_told_where_the_rest_is_refused_and_no_rows_where_all_is(capsys, done, told):
    def run():
        with output.gathered(as_json=True) as rows:
            rows.extend(done)
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run()
    assert capsys.readouterr().out == told


def test_a_line_of_a_pipe_is_as_long_as_its_row():
    """A member of a group may read ten thousand partitions, or more."""
    many = [f"orders-{number}" for number in range(20_000)]
    rows = [{"member": "a", "partitions": many}, {"member": "b", "partitions": []}]
    lines = table_text(rows, {"member": "Member", "partitions": "Partitions"}).splitlines()
    assert [line.split(maxsplit=1) for line in lines] == [
        ["Member", "Partitions"],
        ["a", ", ".join(many)],
        ["b", "-"],
    ]


def test_a_pipe_has_plain_columns_numbers_to_the_right():
    rows = [
        {"topic": "orders", "part": 1, "told": None, "city": "日本"},
        {"topic": "", "part": 1234, "told": [1, 2], "city": "é"},
        {"topic": "a\tb", "part": None, "told": True, "city": ""},
    ]
    columns = {"topic": "Topic", "city": "City", "part": "Partition", "told": "Told"}
    assert table_text(rows, columns).splitlines() == [
        "Topic   City  Partition  Told",
        "orders  日本          1  -",
        "-       é          1234  1, 2",
        "a\\tb    -             -  yes",
    ]
    assert table_text([], columns) == "Topic  City  Partition  Told\n"


TEXTS = {
    "Group": "test-consumer-group",
    "Topic": "customer-orders",
    "Owner": "consumer-1-0a8b7c",
}
NUMBERS = {"Partition": 12, "Offset": 27010444, "LogSize": 598134567, "Lag": 571124123}
BOTH = TEXTS | NUMBERS


@pytest.mark.parametrize("width", [200, 80, 75])
def test_a_terminal_shows_numbers_whole_and_folds_the_texts(monkeypatch, width):
    """Half of 598134567 on a line reads as 59813456."""
    monkeypatch.setattr(output, "_is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    lines = Text.from_ansi(table_text([BOTH], {key: key for key in BOTH})).plain.splitlines()
    assert max(map(len, lines)) <= width
    words = " ".join(lines).split()
    assert {*NUMBERS, *map(str, NUMBERS.values())} <= set(words)


@pytest.mark.parametrize("width", [70, 60])
def test_headings_over_numbers_are_folded_before_numbers_are(monkeypatch, width):
    monkeypatch.setattr(output, "_is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    row = TEXTS | dict.fromkeys(NUMBERS, 1000)
    lines = Text.from_ansi(table_text([row], {key: key for key in row})).plain.splitlines()
    assert max(map(len, lines)) <= width
    assert " ".join(lines).split().count("1000") == len(NUMBERS)


@pytest.mark.parametrize("width", [65, 60, 40, 20, 12])
def test_numbers_that_a_table_has_no_room_for_are_in_plain_columns(monkeypatch, width):
    """They were folded all the same; what is drawn again and again had columns left out, too."""
    monkeypatch.setattr(output, "_is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    columns = {key: key for key in BOTH}
    plain = table_text([BOTH], columns)
    assert {*map(str, BOTH.values())} <= set(plain.split())
    assert len(plain.splitlines()) == 2
    console = Console(file=StringIO(), width=width)
    console.print(drawn([BOTH], columns, width))
    assert {*map(str, NUMBERS.values())} <= set(console.file.getvalue().split())


@pytest.mark.parametrize("width", [30, 13, 12, 1, 0])
def test_a_narrow_terminal_shows_all_there_is(monkeypatch, width):
    monkeypatch.setattr(output, "_is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    row = {"Group": "test-consumer-group", "Offset": 123456789012, "Lag": 987654321098}
    shown = Text.from_ansi(table_text([row], {key: key for key in row})).plain
    assert sorted(filter(str.isdigit, shown)) == sorted("123456789012987654321098")


@pytest.mark.parametrize("width", range(10, 20))
def test_letters_that_are_two_cells_wide_are_not_left_out(monkeypatch, width):
    monkeypatch.setattr(output, "_is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    row = {"Group": "日本語", "Client": "日本", "Host": "日"}
    shown = Text.from_ansi(table_text([row], {key: key for key in row})).plain
    assert sorted(filter("日本語".__contains__, shown)) == sorted("日本語日本日")


def test_a_table_for_a_pipe_is_not_laid_out_cell_by_cell(monkeypatch):
    """That took half a millisecond a row: lags of a thousand groups are tens of thousands."""
    cells = []
    monkeypatch.setattr(output, "Text", lambda *of: cells.append(of) or Text(*of))
    lines = table_text([{"number": number} for number in range(100)], {"number": "Number"})
    assert len(lines.splitlines()) == 101
    assert cells == []


def test_json_holds_no_control_character_and_the_same_text():
    text = json_text({"group": EVIL + "\x7f ☃"})
    assert not {char for char in text if char < " " or "\x7f" <= char < "\xa0"}
    assert "☃" in text
    assert json.loads(text) == {"group": EVIL + "\x7f ☃"}
    record = {"topic": "t", "timestamp": 0, "key": None, "value": EVIL.encode()}
    assert b"\\u009b2J" in as_json(record)


def test_names_of_groups_move_no_cursor(brokers, command):
    FakeCoordinator(brokers, **{EVIL: {("orders", 0): (20, EVIL)}})
    brokers.on("ListGroups", listed((EVIL, "Classic", "Empty")))
    for words in (("groups", "list"), ("groups", "offsets", EVIL)):
        (_, row) = command(*words).stdout.splitlines()
        assert row.isprintable()


def test_what_a_broker_says_in_an_error_is_only_shown(brokers, command):
    said = CreateTopicsResponse.Topic(name="new", error_code=17, error_message=EVIL)
    brokers.on("CreateTopics", CreateTopicsResponse(topics=(said,)))
    done = command("topics", "create", "new")
    assert done.exit_code == 1
    assert all(line.isprintable() for line in done.stderr.split("\n"))
    assert r"x\x1b]0;t\x07" in done.stderr
    assert "prod    Empty" in done.stderr  # a tab, as in Java's traces
