"""Plans of offsets as CSV: both forms read and written, and groups reset by them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafkaproto.cli import output
from pyspark_kafkaproto.cli.offset_plan import plan_in, plan_text, read_plan
from pyspark_kafkaproto.cluster import TopicPartition
from pyspark_kafkaproto.errors import ConfigError
from tests.unit.cluster.committing import FakeCoordinator
from tests.unit.cluster.fake_groups import assigned, classic, describing, listed
from tests.unit.cluster.sharing import FakeShareCoordinator

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
PLAN = {FIRST: 7, SECOND: 0}
ONE = "orders,0,7\norders,1,0\n"
MANY = "a,orders,0,7\na,orders,1,0\nb,orders,0,3\n"


def test_both_forms_are_written():
    assert plan_text({"a": PLAN}, is_many=False) == ONE
    assert plan_text({"a": PLAN, "b": {FIRST: 3}}, is_many=True) == MANY
    assert plan_text({'b, "x"': {FIRST: 3}}, is_many=True) == '"b, ""x""",orders,0,3\n'
    assert plan_text({}, is_many=True) == ""


@pytest.mark.parametrize(
    ("text", "by_group"),
    [
        (ONE, {None: PLAN}),
        (f"\n{ONE}\n\n", {None: PLAN}),
        (ONE.replace("\n", "\r\n"), {None: PLAN}),
        ('"orders","0","7"\n"orders","1","0"', {None: PLAN}),
        (MANY, {"a": PLAN, "b": {FIRST: 3}}),
        ('"b, ""x""",orders,0,3\n', {'b, "x"': {FIRST: 3}}),
        (f"orders,0,{2**63 - 1}", {None: {FIRST: 2**63 - 1}}),
    ],
)
def test_both_forms_are_read(text, by_group):
    assert read_plan("plan.csv", text).by_group == by_group


_NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
_PLACES = st.builds(TopicPartition, _NAMES, st.integers(0, 2**31 - 1))
_OFFSETS = st.dictionaries(_PLACES, st.integers(0, 2**63 - 1), min_size=1)


@given(st.dictionaries(_NAMES, _OFFSETS, min_size=1))
def test_what_is_written_is_read(plan):
    assert read_plan("plan.csv", plan_text(plan, is_many=True)).by_group == plan


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it has no offsets: expected lines of TOPIC,PARTITION,OFFSET, or all of GROUP,TOPIC"),
        ("topic,partition,offset\n", "line 1: 'topic,partition,offset': expected lines of TOPIC"),
        ("orders,0,7\norders,-1,7\n", "line 2: 'orders,-1,7'"),
        ("orders,0,-1\n", "line 1: 'orders,0,-1'"),
        (f"orders,0,{2**63}\n", "line 1: "),
        (f"orders,{2**31},0\n", "line 1: "),
        (",0,7\n", "line 1: ',0,7'"),
        ("orders, 0,7\n", "line 1: "),
        ("orders,0\n", "line 1: 'orders,0'"),
        ("a,orders,0,7,8\n", "line 1: 'a,orders,0,7,8'"),
        ("orders,0,7\na,orders,1,7\n", "line 2: 'a,orders,1,7'"),
        ("orders,0,7\n\norders,0,8\n", "line 3: orders-0 is there twice"),
        ("a,orders,0,7\nb,orders,0,7\na,orders,0,7\n", "line 3: orders-0 of group a is there twic"),
        ('orders,0,"7\n', "line 1: "),
    ],
)
def test_what_is_no_plan_is_refused_with_its_line(text, said):
    with pytest.raises(ConfigError) as caught:
        read_plan("plan.csv", text)
    assert f"option '--from-file' is 'plan.csv': {said}" in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path):
    file = tmp_path / "plan.csv"
    with pytest.raises(ConfigError, match=r"plan\.csv.*it cannot be read: No such file"):
        plan_in(str(file))
    file.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"plan\.csv.*it is no UTF-8"):
        plan_in(str(file))
    file.write_text(f"\ufeff{ONE}")
    assert plan_in(str(file)).by_group == {None: PLAN}


# Groups


@pytest.fixture
def coordinator(brokers):
    """Two groups without members; orders-0 has 30 records."""
    found = FakeCoordinator(brokers, a={FIRST: (20, "")}, b={FIRST: (10, "")})
    describing(brokers, classic("a", state="Empty"), classic("b", state="Empty"))
    brokers.on("ListGroups", listed(("a", "Classic", "Empty"), ("b", "Classic", "Empty")))
    return found


@pytest.fixture
def file(tmp_path):
    """A file, and what makes it."""

    def write(text):
        (tmp_path / "plan.csv").write_text(text)
        return str(tmp_path / "plan.csv")

    return write


@pytest.mark.slow
def test_one_group_is_reset_by_a_file_that_names_none(coordinator, command, file):
    words = ("groups", "reset", "a", "--from-file", file(ONE))
    assert command(*words, "--dry-run", "--export").stdout == ONE
    assert coordinator.offsets["a"] == {FIRST: (20, "")}
    assert command(*words, input="y\n").exit_code == 0
    assert coordinator.offsets["a"] == {FIRST: (7, ""), SECOND: (0, "")}
    done = command("groups", "reset", "a", "--from-file", "-", "--yes", input="orders,0,9")
    assert (done.exit_code, coordinator.offsets["a"][FIRST]) == (0, (9, ""))


@pytest.mark.slow
def test_groups_of_a_file_are_reset(coordinator, command, rows, file):
    words = ("groups", "reset", "--from-file", file(MANY))
    assert command(*words, "--dry-run", "--export").stdout == MANY
    (told,) = rows("groups", "reset", "b", *words[2:], "--dry-run")
    assert told == {"topic": "orders", "partition": 0, "before": 10, "after": 3}
    done = command(*words, "--yes", "--export")
    assert (done.exit_code, done.stdout) == (0, MANY)
    assert coordinator.offsets == {"a": {FIRST: (7, ""), SECOND: (0, "")}, "b": {FIRST: (3, "")}}


def test_plans_of_one_and_of_many_are_exported(coordinator, command):
    words = ("groups", "reset", "--shift=0", "--dry-run", "--export")
    assert command(*words, "a").stdout == "orders,0,20\n"
    many = "a,orders,0,20\nb,orders,0,10\n"
    assert command(*words, "b", "a").stdout == "b,orders,0,10\na,orders,0,20\n"
    assert command(*words, "--all-groups").stdout == many
    none = command(*words, "--all-groups", "--type", "share")
    assert (none.exit_code, none.stdout) == (0, many)  # the fake brokers list all


def test_a_file_of_many_that_is_asked_about_at_a_terminal(coordinator, command, monkeypatch):
    monkeypatch.setattr(output, "_is_terminal", lambda: True)
    done = command("groups", "reset", "a", "--shift=-1", "--export", input="y\n")
    assert (done.exit_code, done.stdout) == (0, "orders,0,19\n")


def test_share_groups_start_where_a_file_says(brokers, command, file):
    coordinator = FakeShareCoordinator(brokers, s={FIRST: (20, 4)})
    words = ("groups", "reset", "s", "--from-file", file("orders,0,7"), "--yes", "--export")
    assert command(*words).stdout == "orders,0,7\n"
    assert coordinator.starts["s"] == {FIRST: (7, 0)}


@pytest.mark.parametrize(
    ("words", "text", "said"),
    [
        ((), ONE, "plan.csv names no groups: name the one that it is for"),
        (("a", "b"), ONE, "plan.csv names no groups"),
        (("a", "c"), MANY, "it says nothing of group c"),
        (("a", "--topic", "orders"), ONE, "--from-file names its partitions: --topic does not"),
        (("--all-groups",), MANY, "--from-file says which groups: --all-groups does not go with"),
        (("a", "--type", "share"), MANY, "--from-file says which groups: --type does not go with"),
        (("a", "--to-latest"), ONE, "give one of --to-earliest, "),
        (("a", "--export", "--json"), ONE, "--export prints CSV: --json does not go with it"),
    ],
)
def test_what_does_not_go_with_a_file(coordinator, brokers, command, file, words, text, said):
    done = command("groups", "reset", *words, "--from-file", file(text), "--yes")
    assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
    assert brokers.asked("OffsetCommit") == []


@pytest.mark.usefixtures("known_at_once", "opinions_at_once")
def test_nothing_is_moved_where_one_group_of_a_file_cannot_be(brokers, command, file):
    FakeCoordinator(brokers, a={FIRST: (20, "")})
    describing(brokers, classic("a", state="Empty"), classic("busy", assigned(0)))
    text = "a,orders,0,7\nbusy,orders,0,7\nc,ghost,0,1\n"
    done = command("groups", "reset", "--from-file", file(text), "--yes")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "group 'busy': NON_EMPTY_GROUP" in done.stderr
    assert "topic 'ghost'" in done.stderr
    assert brokers.asked("OffsetCommit") == []
