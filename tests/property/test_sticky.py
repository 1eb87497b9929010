"""The laws of the sticky assignors."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pyspark_kafkaproto.client.group.classic.assignors import ASSIGNORS
from pyspark_kafkaproto.client.group.classic.subscriber import NOTHING, Claim, Subscriber
from pyspark_kafkaproto.cluster import TopicPartition

TOPICS = ("a", "b", "c")
MOST_GENERATIONS = 6
COUNTS = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 7))
# Of topics that nobody wants any more, and partitions that are not there, too.
PARTITION = st.builds(TopicPartition, st.sampled_from(TOPICS), st.integers(0, 8))
CLAIM = st.builds(Claim, st.frozensets(PARTITION), st.integers(-1, 3))
WANTED = st.frozensets(st.sampled_from(TOPICS), min_size=1)


@st.composite
def groups(draw, wanted=WANTED):
    """Members of a group, most of which claim what nobody else does."""
    wishes = draw(st.lists(wanted, min_size=1, max_size=6))
    claims = [draw(st.just(NOTHING) | CLAIM) for _ in wishes]
    if draw(st.booleans()):
        claims = apart(claims)
    return [
        Subscriber(f"m{number}", topics, claim=claim)
        for number, (topics, claim) in enumerate(zip(wishes, claims, strict=True))
    ]


def apart(claims):
    """The same without what one before has claimed."""
    seen, left = set(), []
    for claim in claims:
        left.append(Claim(claim.partitions - seen, 3))
        seen |= claim.partitions
    return left


def wanted_of(members, counts):
    wanted = {topic for member in members for topic in member.topics}
    return {TopicPartition(t, at) for t in wanted & counts.keys() for at in range(counts[t])}


@given(groups(), COUNTS)
def test_each_partition_goes_to_one_who_wants_it(members, counts):
    found = ASSIGNORS["sticky"](members, counts)
    assert found.keys() == {member.member_id for member in members}
    given_out = [item for own in found.values() for item in own]
    assert sorted(given_out) == sorted(wanted_of(members, counts))
    for member in members:
        assert {item.topic for item in found[member.member_id]} <= member.topics


@given(groups(), COUNTS)
def test_nobody_has_what_another_one_with_two_fewer_wants(members, counts):
    found = ASSIGNORS["sticky"](members, counts)
    for giver in members:
        for taker in members:
            own, others = found[giver.member_id], found[taker.member_id]
            if any(item.topic in taker.topics for item in own):
                assert len(own) - len(others) < 2


@given(groups(), COUNTS)
def test_what_is_even_stays(members, counts):
    """Whoever leads the next generation: nothing moves where nothing has changed."""
    found = ASSIGNORS["sticky"](members, counts)
    again = [
        member._replace(claim=Claim(frozenset(found[member.member_id]), 4)) for member in members
    ]
    assert ASSIGNORS["sticky"](again, counts) == found
    assert ASSIGNORS["cooperative-sticky"](again, counts) == found


@given(groups(wanted=st.just(frozenset(TOPICS))), COUNTS)
def test_no_more_moves_than_even_shares_need(members, counts):
    """Where all want the same: how many must move is known from what each has."""
    members = [
        member._replace(claim=claim)
        for member, claim in zip(members, apart([m.claim for m in members]), strict=True)
    ]
    wanted = wanted_of(members, counts)
    sizes = sorted((len(member.claim.partitions & wanted) for member in members), reverse=True)
    least, more = divmod(len(wanted), len(members))
    kept = sum(min(size, least + (place < more)) for place, size in enumerate(sizes))
    found = ASSIGNORS["sticky"](members, counts)
    stayed = sum(len(member.claim.partitions & {*found[member.member_id]}) for member in members)
    assert stayed == kept


@given(groups(), COUNTS)
def test_nothing_goes_to_anybody_while_another_one_may_read_it(members, counts):
    whole, found = (ASSIGNORS[name](members, counts) for name in ("sticky", "cooperative-sticky"))
    claims = {member.member_id: member.claim for member in members}
    for who, own in found.items():
        assert set(own) <= set(whole[who])
        for item in own:
            others = [
                claim.generation
                for other, claim in claims.items()
                if other != who and item in claim.partitions
            ]
            has_it = item in claims[who].partitions
            assert not others or (has_it and claims[who].generation > max(others))


@given(groups(), COUNTS)
def test_after_some_generations_all_is_given_out(members, counts):
    """The first takes away, the next one gives: each member claims what it was left with.

    Two do, nearly always. Where members want different topics, what becomes free may go to one who
    has something then that another one is to have: one group in a thousand takes a third.
    """
    members = [
        member._replace(claim=claim)
        for member, claim in zip(members, apart([m.claim for m in members]), strict=True)
    ]
    wanted = Counter(wanted_of(members, counts))
    for generation in range(5, 5 + MOST_GENERATIONS):
        found = ASSIGNORS["cooperative-sticky"](members, counts)
        if Counter(item for own in found.values() for item in own) == wanted:
            return
        members = [
            member._replace(claim=Claim(frozenset(found[member.member_id]), generation))
            for member in members
        ]
    raise AssertionError(f"not all is given out after {MOST_GENERATIONS} generations")
