"""The table of rights in docs/security.md, row by row, with Kafka's own StandardAuthorizer."""

import re
from pathlib import Path

import pytest

from pyspark_kafkaproto import KafkaCluster, TopicPartition
from pyspark_kafkaproto.arrow import schema_for
from pyspark_kafkaproto.client import OffsetRange, ReadSettings, ReadTask, read_batches
from pyspark_kafkaproto.cluster import ConfigChange, ConfigResource, NewTopic
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.net import Deadline
from tests.secure_broker import TOPIC

pytestmark = pytest.mark.broker

HELD = {TopicPartition(TOPIC, 0)}


def read(cluster):
    """All records, found and fetched as a reader does it."""
    leaders = cluster.find_leaders(HELD)
    topic_id = cluster.describe({TOPIC}).topic(TOPIC).topic_id
    task = ReadTask((OffsetRange(TOPIC, 0, 0, 3),), leaders, {TOPIC: topic_id})
    batches = read_batches(task, cluster.config, ReadSettings(), schema_for(["value"]))
    return [row["value"] for batch in batches for row in batch.to_pylist()]


GROUP, DOOMED_GROUP = "reports", "doomed-group"
DOOMED_TOPIC = "doomed-topic"
CONFIG = ConfigResource("topic", TOPIC)

# The features of the table, by the words of the page.
FEATURES = {
    "metadata, partitions, leaders": lambda cluster: cluster.describe({TOPIC}, must_exist=True),
    "offsets (earliest, latest, by time)": lambda cluster: cluster.get_latest_leader_offsets(HELD),
    "records": read,
    "committed offsets": lambda cluster: cluster.get_consumer_offsets(GROUP, HELD),
    "lag": lambda cluster: cluster.lag({GROUP}, {TOPIC}),
    "committing offsets": lambda cluster: cluster.set_consumer_offsets(
        GROUP, dict.fromkeys(HELD, 1)
    ),
    "describing a group": lambda cluster: cluster.describe_groups({GROUP}),
    "deleting committed offsets": lambda cluster: cluster.delete_consumer_offsets(GROUP, HELD),
    "deleting a group": lambda cluster: cluster.delete_groups({DOOMED_GROUP}),
    "making a topic": lambda cluster: cluster.create_topics(
        [NewTopic("new-topic", 1, 1)], validate_only=True
    ),
    "adding partitions": lambda cluster: cluster.add_partitions({TOPIC: 2}, validate_only=True),
    "deleting records": lambda cluster: cluster.delete_records(dict.fromkeys(HELD, 0)),
    "deleting a topic": lambda cluster: cluster.delete_topics({DOOMED_TOPIC}),
    "reading configurations": lambda cluster: cluster.describe_configs({CONFIG}),
    "changing configurations": lambda cluster: cluster.alter_configs(
        {CONFIG: [ConfigChange("retention.ms", "1000000")]}, validate_only=True
    ),
}
NAMES = {
    "deleting a group": {"Group": DOOMED_GROUP},
    "deleting a topic": {"Topic": DOOMED_TOPIC},
    "making a topic": {"Topic": "new-topic"},
}
_ROW = re.compile(
    r"^\| (?P<feature>[^|]+?) \| (?P<Topic>\w*) ?\| (?P<Group>\w*) ?\|$", re.MULTILINE
)


def needed(feature):
    """What the page says that a feature takes."""
    names = {"Topic": TOPIC, "Group": GROUP} | NAMES.get(feature, {})
    row = table()[feature]
    return [(row[kind], kind, name) for kind, name in names.items() if row[kind]]


def table():
    page = Path(__file__).parents[2] / "docs" / "security.md"
    text = page.read_text().partition("## Rights")[2].partition("\n## ")[0]
    return {match["feature"]: match for match in _ROW.finditer(text.partition("|---")[2])}


@pytest.fixture(scope="module", autouse=True)
def what_is_deleted(secure):
    """A topic and groups for those who may delete them."""
    with KafkaCluster(secure.properties("INSIDE")) as cluster:
        cluster.create_topics([NewTopic(DOOMED_TOPIC, 1, 1)])
        for group in (GROUP, DOOMED_GROUP):
            cluster.set_consumer_offsets(group, dict.fromkeys(HELD, 1))


def test_the_page_and_this_file_know_the_same_features():
    assert table().keys() == FEATURES.keys()


def test_who_may_see_a_topic_may_not_read_it_yet(secure):
    secure.add_sha512_user("onlooker")
    secure.allow("onlooker", ("DESCRIBE", "Topic", TOPIC))
    with KafkaCluster(secure.as_user("onlooker")) as cluster:
        assert (
            _refusal(
                FEATURES["offsets (earliest, latest, by time)"],
                cluster,
                [("DESCRIBE", "Topic", TOPIC)],
            )
            is None
        )
        with pytest.raises(BrokerError, match="needs the right READ on the topic"):
            read(cluster)
    with KafkaCluster(secure.as_user("reports")) as cluster:
        assert read(cluster) == [b"one", b"two", b"three"]


@pytest.mark.parametrize("feature", FEATURES)
def test_the_missing_right_is_named_and_the_table_is_what_it_takes(secure, feature):
    user = f"who is {feature}"
    secure.add_sha512_user(user)
    given = []
    with KafkaCluster(secure.as_user(user)) as cluster:
        while (error := _refusal(FEATURES[feature], cluster, given)) is not None:
            operation, _, _, kind = str(error).rpartition("needs the right ")[2].split()[:4]
            kind = kind.rstrip(",").capitalize()
            (wanted,) = [right for right in needed(feature) if right[1] == kind]
            # Where not even DESCRIBE is there, that is what is missed first; the others bring it.
            assert operation in {wanted[0], "DESCRIBE"}
            assert wanted not in given
            given.append(wanted)
            secure.allow(user, wanted)
    assert sorted(given) == sorted(needed(feature))


def _refusal(feature, cluster, given):
    """How the feature is refused for want of a right that was not given; None if it works."""
    deadline = Deadline.after(10)
    while True:
        try:
            feature(cluster)
        except BrokerError as error:
            kinds = {29: "Topic", 30: "Group"}
            if kinds[error.code] not in {kind for _, kind, _ in given}:
                return error
            # A right reaches the broker's authorizer a moment after it was given.
            deadline.check(f"waiting for the rights {given}")
        else:
            return None
