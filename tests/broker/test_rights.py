"""The table of rights in docs/security.md, row by row, with Kafka's own StandardAuthorizer."""

import re
from pathlib import Path

import pytest

from pyspark_kafkaproto import (
    Consumer,
    KafkaCluster,
    Producer,
    ProducerRecord,
    ShareConsumer,
    TopicPartition,
)
from pyspark_kafkaproto.arrow import schema_for
from pyspark_kafkaproto.client import OffsetRange, ReadSettings, ReadTask, read_batches
from pyspark_kafkaproto.client.batch_commit import commit_batch
from pyspark_kafkaproto.client.decisions import DecisionLog
from pyspark_kafkaproto.cluster import ConfigChange, ConfigResource, NewTopic, ToEarliest
from pyspark_kafkaproto.cluster.admin import Acl, AclFilter, QuotaEntity, Replica, ScramCredential
from pyspark_kafkaproto.error_codes import (
    BROKER_ID_NOT_REGISTERED,
    DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    GROUP_AUTHORIZATION_FAILED,
)
from pyspark_kafkaproto.errors import BrokerError
from pyspark_kafkaproto.net import (
    ConsumerConfig,
    Deadline,
    ProducerConfig,
    ShareConfig,
    connections_for,
)
from tests.secure_broker import TOPIC

pytestmark = pytest.mark.broker

HELD = {TopicPartition(TOPIC, 0)}
GROUP, DOOMED_GROUP, MEMBERS_GROUP = "reports", "doomed-group", "members"
INCREMENTAL_GROUP = "members-of-kip-848"
SHARE_GROUP, DOOMED_SHARE_GROUP = "workers", "doomed-workers"
MEMBERS_SHARE_GROUP = "members-of-a-share-group"
DOOMED_TOPIC, WRITTEN_TOPIC = "doomed-topic", "written-topic"
HELD_UP_TOPIC = "held-up-topic"
DECISIONS, PREFIX = "decisions", "orders-job"
JOBS, JOB = "batch", "0123abcd"
TASKS = f"{PREFIX}-{JOBS}-{JOB}-"
WRITERS = []  # of the job's tasks
FOLDERS = []  # of the broker
OWN_ID = "a-transactional-id"
CLUSTER = "kafka-cluster"  # Kafka's own word for the one resource of this kind
ANY_ACL = Acl("topic", "of-nobody", principal="User:nobody", operation="read")
OTHER = "User:reports"  # whose tokens they are
ANY_USER = ScramCredential("nobody", "its password")
CONFIG, BROKER_CONFIG = ConfigResource("topic", TOPIC), ConfigResource("broker", "1")
GROUP_CONFIG = ConfigResource("group", GROUP)


def read(cluster):
    """All records, found and fetched as a reader does it."""
    leaders = cluster.find_leaders(HELD)
    topic_id = cluster.describe({TOPIC}).topic(TOPIC).topic_id
    task = ReadTask((OffsetRange(TOPIC, 0, 0, 3),), leaders, {TOPIC: topic_id})
    batches = read_batches(task, cluster.config, ReadSettings(), schema_for(["value"]))
    return [row["value"] for batch in batches for row in batch.to_pylist()]


def write(cluster):
    with Producer(ProducerConfig(client=cluster.config), topic=WRITTEN_TOPIC) as producer:
        producer.send([ProducerRecord("value")])


def be_a_member(cluster, group=MEMBERS_GROUP, protocol="classic"):
    """Join, read and commit."""
    config = ConsumerConfig(
        client=cluster.config,
        group_id=group,
        group_protocol=protocol,
        auto_offset_reset="earliest",
        metadata_max_age_s=0.2,
    )
    deadline = Deadline.after(20)
    with Consumer(config, {TOPIC}) as consumer:
        while consumer.poll(0.2) is None:
            deadline.check("reading as a member")
        consumer.commit()


def be_a_share_member(cluster):
    """Join, read, and give back what was read: the next one is to find it."""
    config = ShareConfig(client=cluster.config, group_id=MEMBERS_SHARE_GROUP)
    deadline = Deadline.after(20)
    consumer = ShareConsumer(config, {TOPIC})
    try:
        while consumer.poll(0.2) is None:
            deadline.check("reading as a member of a share group")
    finally:
        consumer.close()


def transact(cluster, transactional_id=OWN_ID):
    config = ProducerConfig(client=cluster.config, transactional_id=transactional_id)
    with Producer(config, topic=WRITTEN_TOPIC) as producer:
        producer.begin_transaction()
        producer.send([ProducerRecord("value")])
        producer.commit_transaction()


def commit_offsets_in_a_transaction(cluster):
    config = ProducerConfig(client=cluster.config, transactional_id=OWN_ID)
    with Producer(config) as producer:
        producer.begin_transaction()
        producer.send_offsets_to_transaction(dict.fromkeys(HELD, 1), GROUP)
        producer.commit_transaction()


def decide(cluster):
    """What the driver does once its tasks have written."""
    try:
        commit_batch(DecisionLog(cluster.config, DECISIONS, PREFIX), JOBS, JOB, WRITERS, job=JOB)
    finally:
        connections_for(cluster.config).close()


def list_decisions(cluster):
    try:
        DecisionLog(cluster.config, DECISIONS, PREFIX).read()
    finally:
        connections_for(cluster.config).close()


def look_at_a_share_group(cluster):
    (found,) = cluster.get_share_group_offsets({SHARE_GROUP}).values()
    if not found:  # as where nothing is: topics that may not be seen are left out
        cluster.get_partitions({TOPIC})
        raise AssertionError("the topic may be seen, and its offsets may not")


def abort_the_one_that_is_open(cluster):
    """Live as it is, it looks as if it hung: this user may not see its transactional id."""
    cluster.abort_transaction((HELD_UP_TOPIC, 0), 0)


def unregister_nobody(cluster):
    try:
        cluster.unregister_broker(99)
    except BrokerError as error:
        if error.code != BROKER_ID_NOT_REGISTERED:
            raise


def list_tokens_of_others(cluster):
    """Those that may not be seen are left out, without an error."""
    if not cluster.describe_delegation_tokens({OTHER}):
        why = "this user needs the right DESCRIBE_TOKENS on the user"
        code = DELEGATION_TOKEN_AUTHORIZATION_FAILED
        raise BrokerError(code, "DescribeDelegationToken", OTHER, why)


# The features of the table, by the words of the page.
FEATURES = {
    "metadata, partitions, leaders": lambda cluster: cluster.describe({TOPIC}, must_exist=True),
    "offsets (earliest, latest, by time)": lambda cluster: cluster.get_latest_leader_offsets(HELD),
    "reading records": read,
    "writing records": write,
    "sizes of logs (`maxBytesPerTrigger`)": lambda cluster: cluster.get_log_sizes(HELD),
    "committed offsets (`committed`, `plan_ranges`)": lambda cluster: cluster.get_consumer_offsets(
        GROUP, HELD
    ),
    "lag": lambda cluster: cluster.lag({GROUP}, {TOPIC}),
    "committing offsets (`commitGroupId`, `commit_ranges`)": (
        lambda cluster: cluster.set_consumer_offsets(GROUP, dict.fromkeys(HELD, 1))
    ),
    "being a member of a group (`Consumer`)": be_a_member,
    "being one with `group.protocol=consumer`": (
        lambda cluster: be_a_member(cluster, INCREMENTAL_GROUP, "consumer")
    ),
    "being a member of a share group (`ShareConsumer`)": be_a_share_member,
    "describing a group": lambda cluster: cluster.describe_groups({GROUP}),
    "deleting committed offsets": lambda cluster: cluster.delete_consumer_offsets(GROUP, HELD),
    "deleting a group": lambda cluster: cluster.delete_groups({DOOMED_GROUP}),
    "where a share group starts": look_at_a_share_group,
    "moving where a share group starts": (
        lambda cluster: cluster.reset_share_group_offsets(SHARE_GROUP, ToEarliest(), HELD)
    ),
    "forgetting where a share group starts": (
        lambda cluster: cluster.delete_share_group_offsets(DOOMED_SHARE_GROUP, {TOPIC})
    ),
    "transactions (`transactional.id`)": transact,
    "offsets in a transaction": commit_offsets_in_a_transaction,
    "exactly once: writing (`transactionalIdPrefix`)": (
        lambda cluster: transact(cluster, f"{TASKS}1-0")
    ),
    "exactly once: deciding, on the `decisionTopic`": decide,
    "exactly once: `transactions list`, on the `decisionTopic`": list_decisions,
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
    "reading configurations of brokers": lambda cluster: cluster.describe_configs({BROKER_CONFIG}),
    "changing configurations of brokers": lambda cluster: cluster.alter_configs(
        {BROKER_CONFIG: [ConfigChange("log.cleaner.threads", "2")]}, validate_only=True
    ),
    "reading configurations of groups": lambda cluster: cluster.describe_configs({GROUP_CONFIG}),
    "changing configurations of groups": lambda cluster: cluster.alter_configs(
        {GROUP_CONFIG: [ConfigChange("consumer.session.timeout.ms", "46000")]}, validate_only=True
    ),
    "listing what has configurations": lambda cluster: cluster.list_config_resources(),
    "listing ACLs": lambda cluster: cluster.describe_acls(),
    "changing ACLs": lambda cluster: (
        cluster.create_acls({ANY_ACL}),
        cluster.delete_acls({AclFilter.of(ANY_ACL)}),
    ),
    "listing SCRAM users": lambda cluster: cluster.describe_users(),
    "changing SCRAM users": lambda cluster: cluster.set_users({ANY_USER}),
    "making delegation tokens for others": lambda cluster: cluster.create_delegation_token(OTHER),
    "listing delegation tokens of others": list_tokens_of_others,
    "listing quotas": lambda cluster: cluster.describe_quotas(),
    "changing quotas": lambda cluster: cluster.alter_quotas(
        {QuotaEntity(user="nobody"): {"consumer_byte_rate": 1}}, validate_only=True
    ),
}
FEATURES |= {
    "listing reassignments": lambda cluster: cluster.list_reassignments(),
    "beginning and cancelling reassignments": (
        lambda cluster: cluster.reassign_partitions(dict.fromkeys(HELD, (1,)))
    ),
    "throttling reassignments": lambda cluster: cluster.end_throttle(
        cluster.throttle_reassignment(dict.fromkeys(HELD, (2,)), 1_000_000)
    ),
    "electing leaders": lambda cluster: cluster.elect_leaders(HELD),
    "looking into folders of brokers": lambda cluster: cluster.describe_log_dirs(),
    "moving replicas between folders": (
        lambda cluster: cluster.move_replicas({Replica(1, TOPIC, 0): FOLDERS[0]})
    ),
    "looking at the metadata quorum": lambda cluster: cluster.describe_quorum(),
    "changing levels of features": lambda cluster: cluster.update_features(
        {"group.version": 1}, validate_only=True
    ),
    "unregistering a broker": unregister_nobody,
    "who writes to a partition": lambda cluster: cluster.describe_producers(HELD),
    "listing and describing transactions": lambda cluster: cluster.describe_transactions({OWN_ID}),
    "finding hanging transactions": lambda cluster: cluster.find_hanging_transactions(HELD),
    "aborting a hanging transaction": abort_the_one_that_is_open,
    "fencing a producer": lambda cluster: cluster.fence_producers({OWN_ID}),
}
_USUAL_NAMES = {
    "Topic": TOPIC,
    "Group": GROUP,
    "TransactionalId": OWN_ID,
    "Cluster": CLUSTER,
    "User": OTHER,
}
NAMES = {
    "writing records": {"Topic": WRITTEN_TOPIC},
    "being a member of a group (`Consumer`)": {"Group": MEMBERS_GROUP},
    "being one with `group.protocol=consumer`": {"Group": INCREMENTAL_GROUP},
    "being a member of a share group (`ShareConsumer`)": {"Group": MEMBERS_SHARE_GROUP},
    "deleting a group": {"Group": DOOMED_GROUP},
    "where a share group starts": {"Group": SHARE_GROUP},
    "moving where a share group starts": {"Group": SHARE_GROUP},
    "forgetting where a share group starts": {"Group": DOOMED_SHARE_GROUP},
    "transactions (`transactional.id`)": {"Topic": WRITTEN_TOPIC},
    "exactly once: writing (`transactionalIdPrefix`)": {
        "Topic": WRITTEN_TOPIC,
        "TransactionalId": f"{PREFIX}*",
    },
    "exactly once: deciding, on the `decisionTopic`": {
        "Topic": DECISIONS,
        "TransactionalId": f"{PREFIX}*",
    },
    "exactly once: `transactions list`, on the `decisionTopic`": {"Topic": DECISIONS},
    "deleting a topic": {"Topic": DOOMED_TOPIC},
    "making a topic": {"Topic": "new-topic"},
    "aborting a hanging transaction": {"Topic": HELD_UP_TOPIC},
}
# A member waits for a topic that it may not see, as for one that is not there yet.
SEEN_BEFORE = {"being a member of a group (`Consumer`)": [("DESCRIBE", "Topic", TOPIC)]}
_ROW = re.compile(
    r"^\| (?P<feature>[^|]+?) \|"
    + "".join(rf" (?P<{kind}>[\w ]*?) ?\|" for kind in _USUAL_NAMES)
    + "$",
    re.MULTILINE,
)


def needed(feature):
    """What the page says that a feature takes."""
    names = _USUAL_NAMES | NAMES.get(feature, {})
    row = table()[feature]
    return [
        (operation, kind, name)
        for kind, name in names.items()
        for operation in filter(None, row[kind].split(" and "))
    ]


def table():
    page = Path(__file__).parents[2] / "docs" / "security.md"
    text = page.read_text().partition("## Rights")[2].partition("\n## ")[0]
    return {match["feature"]: match for match in _ROW.finditer(text.partition("|---")[2])}


@pytest.fixture(scope="module", autouse=True)
def what_is_there(secure):
    """Topics to write to, what is to be deleted, and a task's transaction to decide about."""
    properties = secure.properties("INSIDE")
    with KafkaCluster(properties) as cluster:
        names = (DOOMED_TOPIC, WRITTEN_TOPIC, HELD_UP_TOPIC, DECISIONS)
        cluster.create_topics([NewTopic(name, 1, 1) for name in names])
        for group in (GROUP, DOOMED_GROUP):
            cluster.set_consumer_offsets(group, dict.fromkeys(HELD, 1))
        for group in (SHARE_GROUP, DOOMED_SHARE_GROUP, MEMBERS_SHARE_GROUP):
            cluster.reset_share_group_offsets(group, ToEarliest(), HELD)
        FOLDERS.extend(cluster.describe_log_dirs()[1])
        transact(cluster)
    with KafkaCluster(secure.as_user("reports")) as cluster:
        cluster.create_delegation_token()
    WRITERS.append(leave_open(properties, f"{TASKS}0-0", WRITTEN_TOPIC))
    leave_open(properties, "one-that-holds-up", HELD_UP_TOPIC)


def leave_open(properties, transactional_id, topic):
    # As long as brokers allow: what is to be decided about has to be open until then.
    open_ms = {"transaction.timeout.ms": "900000"}
    own = properties | open_ms | {"transactional.id": transactional_id}
    with Producer(own, topic=topic) as producer:
        producer.begin_transaction()
        producer.send([ProducerRecord("value")])
        producer.flush()
        return producer.leave_transaction()


def test_the_page_and_this_file_know_the_same_features():
    assert table().keys() == FEATURES.keys()


def test_who_may_see_a_topic_may_not_read_it_yet(secure):
    secure.add_sha512_user("onlooker")
    secure.allow("onlooker", ("DESCRIBE", "Topic", TOPIC))
    with KafkaCluster(secure.as_user("onlooker")) as cluster:
        look = FEATURES["offsets (earliest, latest, by time)"]
        assert _refusal(look, cluster, [("DESCRIBE", "Topic", TOPIC)]) is None
        with pytest.raises(BrokerError, match="needs the right READ on the topic"):
            read(cluster)
    with KafkaCluster(secure.as_user("reports")) as cluster:
        assert read(cluster) == [b"one", b"two", b"three"]


@pytest.mark.parametrize("feature", FEATURES)
def test_the_missing_right_is_named_and_the_table_is_what_it_takes(secure, feature):
    user = f"who is {feature}"
    secure.add_sha512_user(user)
    if feature in SEEN_BEFORE:
        secure.allow(user, *SEEN_BEFORE[feature])
    given = []
    with KafkaCluster(secure.as_user(user)) as cluster:
        while (error := _refusal(FEATURES[feature], cluster, given)) is not None:
            operation, kind = _named(error)
            of_this_kind = [right for right in needed(feature) if right[1] == kind]
            wanted = next(
                # Where not even DESCRIBE is there, that is what is missed first; others bring it.
                right
                for right in of_this_kind
                if operation in {right[0], "DESCRIBE"}
            )
            assert wanted[0] in str(error)
            assert wanted not in given
            given.append(wanted)
            secure.allow(user, wanted)
    assert sorted(given) == sorted(needed(feature))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_that_was_refused_reads_once_it_has_the_rights(secure, protocol):
    user = f"late {protocol}"
    secure.add_sha512_user(user)
    own = {"group.id": f"late-{protocol}", "group.protocol": protocol, "metadata.max.age.ms": 200}
    config = secure.as_user(user) | own | {"auto.offset.reset": "earliest"}
    rights = [("READ", "Group", f"late-{protocol}"), ("READ", "Topic", TOPIC)]
    refused, batch = [], None
    deadline = Deadline.after(30)
    with Consumer(config, {TOPIC}) as consumer:
        while batch is None:
            deadline.check(f"rows; refused: {refused}")
            try:
                batch = consumer.poll(0.2)
            except BrokerError as error:
                refused.append(error.code)
            if rights and refused:
                secure.allow(user, rights.pop(0))
    assert batch.num_rows == 3
    assert GROUP_AUTHORIZATION_FAILED in refused


def _named(error):
    """The right that an error names first, and on what kind of resource."""
    operation, _, _, kind = str(error).rpartition("needs the right ")[2].split()[:4]
    kinds = {"topic": "Topic", "group": "Group", "cluster": "Cluster", "user": "User"}
    return operation, kinds.get(kind.rstrip(","), "TransactionalId")


def _refusal(feature, cluster, given):
    """How the feature is refused for want of a right that was not given; None if it works."""
    deadline = Deadline.after(10)
    while True:
        try:
            feature(cluster)
        except BrokerError as error:
            operation, kind = _named(error)
            held = {item for item, own, _ in given if own == kind}
            if operation not in held and not (operation == "DESCRIBE" and held):
                return error
            # A right reaches the broker's authorizer a moment after it was given.
            deadline.check(f"waiting for the rights {given}")
        else:
            return None
