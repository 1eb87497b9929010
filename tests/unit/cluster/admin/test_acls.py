"""ACLs described, made and deleted: what goes to the controller, and what its answers say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyspark_kafkaproto.cluster.admin import OPERATIONS, RESOURCE_TYPES, Acl, AclFilter, acls
from pyspark_kafkaproto.cluster.admin.acls import OPERATIONS_OF
from pyspark_kafkaproto.errors import (
    BrokerError,
    ConfigError,
    RemoteProtocolError,
    UnsupportedVersion,
)
from pyspark_kafkaproto.messages.create_acls import CreateAclsResponse
from pyspark_kafkaproto.messages.delete_acls import DeleteAclsResponse
from pyspark_kafkaproto.messages.describe_acls import DescribeAclsResponse
from tests.fake_broker import close

READ = Acl("topic", "orders", principal="User:reports", operation="read")
WRITE = Acl(
    "topic",
    "orders-",
    pattern_type="prefixed",
    principal="User:o=d,d ☃",
    host="10.0.0.1",
    operation="write",
    permission="deny",
)
NUMBERS = {READ: (2, 3, 3, 3), WRITE: (2, 4, 4, 2)}  # type, pattern, operation, permission


def described(*acls, code=0, message=None):
    part = DescribeAclsResponse.Resource
    return DescribeAclsResponse(
        error_code=code,
        error_message=message,
        resources=tuple(
            part(
                resource_type=NUMBERS[acl][0],
                resource_name=acl.resource_name,
                pattern_type=NUMBERS[acl][1],
                acls=(
                    part.Acl(
                        principal=acl.principal,
                        host=acl.host,
                        operation=NUMBERS[acl][2],
                        permission_type=NUMBERS[acl][3],
                    ),
                ),
            )
            for acl in acls
        ),
    )


def created(*codes, message=None):
    part = CreateAclsResponse.Result
    results = (part(error_code=code, error_message=message) for code in codes)
    return CreateAclsResponse(results=tuple(results))


def matching(acl, code=0, message=None):
    kind, pattern, operation, permission = NUMBERS[acl]
    return DeleteAclsResponse.FilterResult.MatchingAcl(
        error_code=code,
        error_message=message,
        resource_type=kind,
        resource_name=acl.resource_name,
        pattern_type=pattern,
        principal=acl.principal,
        host=acl.host,
        operation=operation,
        permission_type=permission,
    )


def deleted(*found):
    """Of each filter an error code, or what it found."""
    part = DeleteAclsResponse.FilterResult
    return DeleteAclsResponse(
        filter_results=tuple(
            part(error_code=item) if isinstance(item, int) else part(matching_acls=tuple(item))
            for item in found
        )
    )


def test_all_are_described_by_a_filter_of_nothing(brokers, kafka):
    brokers.controller = 2
    brokers.on("DescribeAcls", described(WRITE, READ))
    assert kafka.describe_acls() == [READ, WRITE]
    (request,) = brokers.asked("DescribeAcls", node=2)
    numbers = request.resource_type_filter, request.pattern_type_filter
    assert (*numbers, request.operation, request.permission_type) == (1, 1, 1, 1)
    assert (request.resource_name_filter, request.principal_filter, request.host_filter) == (
        None,
        None,
        None,
    )


def test_filter_says_all_that_it_holds(brokers, kafka):
    brokers.on("DescribeAcls", described())
    wanted = AclFilter("group", "g", "match", "User:a", "*", "describe-configs", "deny")
    assert kafka.describe_acls(wanted) == []
    (request,) = brokers.asked("DescribeAcls")
    numbers = request.resource_type_filter, request.pattern_type_filter
    assert (*numbers, request.operation, request.permission_type) == (3, 2, 10, 2)
    assert (request.resource_name_filter, request.principal_filter, request.host_filter) == (
        "g",
        "User:a",
        "*",
    )


def test_words_of_a_later_kafka_are_shown_as_numbers(brokers, kafka):
    part = DescribeAclsResponse.Resource
    acl = part.Acl(principal="User:a", host="*", operation=99, permission_type=3)
    new = part(resource_type=98, resource_name="x", pattern_type=97, acls=(acl,))
    brokers.on("DescribeAcls", DescribeAclsResponse(resources=(new,)))
    (found,) = kafka.describe_acls()
    assert (found.resource_type, found.pattern_type, found.operation) == ("(98)", "(97)", "(99)")


def test_acl_with_words_of_a_later_kafka_is_deleted_by_their_numbers(brokers, kafka):
    """Whatever is listed can be deleted: the broker knows what it has told."""
    acl = Acl("(98)", "orders", pattern_type="(97)", principal="User:a", operation="(99)")
    brokers.on("DeleteAcls", deleted(()))
    kafka.delete_acls({AclFilter.of(acl)})
    ((wanted,),) = (request.filters for request in brokers.asked("DeleteAcls"))
    assert (wanted.resource_type_filter, wanted.pattern_type_filter) == (98, 97)
    assert (wanted.operation, wanted.permission_type) == (99, 3)
    with pytest.raises(ConfigError, match="resource_type"):
        kafka.create_acls({acl})


@pytest.mark.parametrize("number", ["(0)", "(1)", "(3)", "(128)", "(016)", "16", "(-1)", "(99"])
def test_numbers_that_stand_for_more_than_one_right_or_for_none_are_refused(brokers, kafka, number):
    with pytest.raises(ConfigError, match="operation"):
        kafka.delete_acls({AclFilter(principal="User:a", operation=number)})
    assert brokers.asked("DeleteAcls") == []


@pytest.mark.parametrize("what", ["describe", "create", "delete"])
def test_cluster_without_an_authorizer_says_so(brokers, kafka, what):
    brokers.on("DescribeAcls", described(code=54, message="No Authorizer is configured."))
    brokers.on("CreateAcls", created(54))
    brokers.on("DeleteAcls", deleted(54))
    with pytest.raises(BrokerError, match=r"SECURITY_DISABLED.*has no authorizer.*authorizer\.cl"):
        {
            "describe": kafka.describe_acls,
            "create": lambda: kafka.create_acls({READ}),
            "delete": lambda: kafka.delete_acls({AclFilter()}),
        }[what]()


def test_missing_right_is_named_and_not_the_brokers_request(brokers, kafka):
    noise = "Request Request(processor=3, session=Session@2eafb3d6) needs DESCRIBE permission."
    brokers.on("DescribeAcls", described(code=31, message=noise))
    with pytest.raises(BrokerError, match="needs the right DESCRIBE on the cluster") as caught:
        kafka.describe_acls()
    assert "Session" not in str(caught.value)
    brokers.on("CreateAcls", created(31, message=noise))
    with pytest.raises(BrokerError, match=r"ACL allow 'User:reports'.*right ALTER on the cluster"):
        kafka.create_acls({READ})


def test_made_of_the_controller_with_kafkas_numbers(brokers, kafka):
    brokers.controller = 2
    brokers.on("CreateAcls", created(0, 0))
    kafka.create_acls([WRITE, READ, READ])
    (request,) = brokers.asked("CreateAcls", node=2)
    assert [
        (
            item.resource_type,
            item.resource_pattern_type,
            item.operation,
            item.permission_type,
            item.resource_name,
            item.principal,
            item.host,
        )
        for item in request.creations
    ] == [
        (*NUMBERS[READ], "orders", "User:reports", "*"),
        (*NUMBERS[WRITE], "orders-", "User:o=d,d ☃", "10.0.0.1"),
    ]


@pytest.mark.parametrize("host", ["10.0.0.1", "0:0:0:0:0:0:0:1", "fe80:0:0:0:a:0:0:1%eth0"])
def test_a_host_goes_out_as_brokers_compare_it(brokers, kafka, host):
    brokers.on("CreateAcls", created(0))
    kafka.create_acls({replace(READ, host=host)})
    assert brokers.asked("CreateAcls")[0].creations[0].host == host


def test_one_that_is_refused_is_named_and_the_others_are_made(brokers, kafka):
    brokers.on("CreateAcls", created(0, 42, message="no such thing"))
    with pytest.raises(
        BrokerError, match=r"deny 'User:o=d,d ☃' write.*\(prefixed\) from 10\.0.*no such thing"
    ) as caught:
        kafka.create_acls({READ, WRITE})
    assert set(caught.value.usable) == {READ}


@pytest.mark.slow
def test_controller_that_moved_and_lost_answers_are_tried_again(brokers, kafka):
    def move(_):
        brokers.controller = 2
        return created(41)

    brokers.on("CreateAcls", move, node=1)
    brokers.on("CreateAcls", close(), created(0), node=2)
    kafka.create_acls({READ})
    assert len(brokers.asked("CreateAcls", node=2)) == 2


def test_many_go_in_several_requests(brokers, kafka, monkeypatch):
    monkeypatch.setattr(acls, "_ACLS_PER_REQUEST", 2)

    def answer(call):
        return created(*[0] * len(call.request.creations))

    brokers.on("CreateAcls", answer)
    kafka.create_acls(  # what can be gone through once is taken, too
        Acl("topic", f"t{n}", principal="User:a", operation="read") for n in range(5)
    )
    assert [len(item.creations) for item in brokers.asked("CreateAcls")] == [2, 2, 1]


def test_answers_about_another_number_of_acls_are_an_error(brokers, kafka):
    brokers.on("CreateAcls", created(0))
    with pytest.raises(RemoteProtocolError, match="asked about 2, answered 1"):
        kafka.create_acls({READ, WRITE})
    brokers.on("DeleteAcls", deleted())
    with pytest.raises(RemoteProtocolError, match="asked about 1, answered 0"):
        kafka.delete_acls({AclFilter()})


def test_deleted_ones_are_told_by_filter(brokers, kafka):
    of_topic, of_user = AclFilter("topic", "orders"), AclFilter(principal="User:a")
    brokers.on("DeleteAcls", deleted((), (matching(WRITE), matching(READ))))
    found = kafka.delete_acls([of_topic, of_user])
    (request,) = brokers.asked("DeleteAcls")
    first, second = request.filters  # in the filters' own order: what is None comes first
    assert (first.principal_filter, second.resource_name_filter) == ("User:a", "orders")
    assert found == {of_user: [], of_topic: [READ, WRITE]}


def test_filter_that_is_refused_has_those_of_the_others_beside_it(brokers, kafka):
    of_topic, of_user = AclFilter("topic", "orders"), AclFilter(principal="User:a")
    brokers.on("DeleteAcls", deleted((matching(READ),), 42))
    with pytest.raises(BrokerError, match=r"AclFilter.*orders.*INVALID_REQUEST") as caught:
        kafka.delete_acls([of_topic, of_user])
    assert caught.value.usable == {of_user: [READ]}


def test_acl_that_stays_is_named_with_those_that_are_gone(brokers, kafka):
    stays = matching(WRITE, code=-1, message="it stays")
    brokers.on("DeleteAcls", deleted((stays, matching(READ))))
    with pytest.raises(
        BrokerError, match=r"ACL deny 'User:o=d.*it stays; deleted all the same: allow 'User:rep"
    ):
        kafka.delete_acls({AclFilter()})


def test_nothing_is_asked_for_nothing(brokers, kafka):
    kafka.create_acls(())
    assert kafka.delete_acls(()) == {}
    assert brokers.asked("CreateAcls") == brokers.asked("DeleteAcls") == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"resource_type": "topics"}, "'topics': expected one of topic, group"),
        ({"pattern_type": "match"}, "'match': expected one of literal, prefixed"),
        ({"operation": "READ"}, "'READ': expected one of all, read"),
        ({"permission": None}, "missing: expected one of deny, allow"),
        ({"principal": "reports"}, "'reports': expected its type, too: User:reports"),
        ({"principal": "User:"}, "expected its type, too"),
        ({"host": ""}, "'host' is '': expected a name"),
        ({"host": "client-1"}, "'client-1': expected an address, or [*]: brokers look no names up"),
        ({"host": "10.0.0.0/8"}, "expected an address"),
        ({"host": "10.0.0"}, "expected an address"),
        ({"host": "::1"}, "'::1': expected it as brokers compare it: 0:0:0:0:0:0:0:1$"),
        ({"host": "FE80::1%eth0"}, "compare it: fe80:0:0:0:0:0:0:1%eth0$"),
        ({"host": "::ffff:10.0.0.1"}, r"compare it: 10\.0\.0\.1$"),
        ({"host": "::ffff:10.0.0.1%eth0"}, r"compare it: 10\.0\.0\.1$"),
        ({"host": "10.0.0.1%eth0"}, "expected an address"),
        ({"host": "fe80:0:0:0:0:0:0:1%"}, "expected an address"),
        ({"resource_name": None}, "'resource_name' is missing: expected a name"),
        ({"resource_type": "cluster"}, "'orders': a cluster's is kafka-cluster"),
        ({"resource_name": "orders-*"}, r"'orders-\*': no topic is called so: \* alone is every"),
        ({"resource_name": "o*", "pattern_type": "prefixed"}, "no topic is called so"),
    ],
)
def test_what_no_broker_takes_is_refused_here(brokers, kafka, wrong, said):
    named = {"resource_type": "topic", "resource_name": "orders", "principal": "User:a"}
    with pytest.raises(ConfigError, match=said):
        kafka.create_acls([Acl(**(named | {"operation": "read"} | wrong))])
    assert brokers.asked("CreateAcls") == []


def test_one_is_no_set_of_them(kafka):
    with pytest.raises(ConfigError, match=r"'Acls'.*expected a set of Acl"):
        kafka.create_acls(READ)
    with pytest.raises(ConfigError, match="expected AclFilter"):
        kafka.delete_acls({READ})
    with pytest.raises(ConfigError, match="'pattern_type' is 'like'"):
        kafka.describe_acls(AclFilter(pattern_type="like"))


def test_brokers_that_know_no_users_are_named(brokers, kafka):
    brokers.versions["CreateAcls"] = (1, 2)
    acl = Acl("user", "User:a", principal="User:b", operation="create-tokens")
    with pytest.raises(UnsupportedVersion, match="speaks CreateAcls 1 to 2, this package 3"):
        kafka.create_acls({acl})
    brokers.on("CreateAcls", created(0))
    kafka.create_acls({READ})


def test_each_type_has_operations_that_mean_something():
    assert tuple(OPERATIONS_OF) == RESOURCE_TYPES
    assert {item for own in OPERATIONS_OF.values() for item in own} | {"all"} == set(OPERATIONS)
