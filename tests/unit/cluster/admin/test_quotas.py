"""Client quotas described and altered: entities and filters on the wire, and what is refused."""

from __future__ import annotations

import pytest

from pyspark_kafkaproto.cluster.admin import QUOTAS, QuotaEntity, QuotaFilter, QuotaName
from pyspark_kafkaproto.errors import BrokerError, ConfigError, RemoteProtocolError
from pyspark_kafkaproto.messages.alter_client_quotas import AlterClientQuotasResponse
from pyspark_kafkaproto.messages.describe_client_quotas import DescribeClientQuotasResponse
from tests.fake_broker import close

DEFAULT, ANY = QuotaName.DEFAULT, QuotaName.ANY
REPORTS = QuotaEntity(user="reports")
LOADER = QuotaEntity(DEFAULT, "loader")
ADDRESSES = QuotaEntity(ip=DEFAULT)


def parts(entity):
    return [
        (kind, None if name is DEFAULT else name)
        for kind, name in zip(
            ("user", "client-id", "ip"), (entity.user, entity.client_id, entity.ip), strict=True
        )
        if name is not None
    ]


def described(quotas, code=0, message=None):
    entry = DescribeClientQuotasResponse.Entry
    return DescribeClientQuotasResponse(
        error_code=code,
        error_message=message,
        entries=None
        if code
        else tuple(
            entry(
                entity=tuple(entry.Entity(entity_type=k, entity_name=n) for k, n in parts(entity)),
                values=tuple(entry.Value(key=key, value=value) for key, value in own.items()),
            )
            for entity, own in quotas.items()
        ),
    )


def altered(codes):
    entry = AlterClientQuotasResponse.Entry
    return AlterClientQuotasResponse(
        entries=tuple(
            entry(
                error_code=code,
                error_message="so it is" if code else None,
                entity=tuple(entry.Entity(entity_type=k, entity_name=n) for k, n in parts(entity)),
            )
            for entity, code in codes.items()
        )
    )


def test_all_are_described_by_a_filter_of_nothing(brokers, kafka):
    brokers.controller = 2
    quotas = {
        ADDRESSES: {"connection_creation_rate": 20.0},
        REPORTS: {"consumer_byte_rate": 5.0, "request_percentage": 12.5},
        LOADER: {"producer_byte_rate": 1.0},
    }
    brokers.on("DescribeClientQuotas", described(quotas))
    found = kafka.describe_quotas()
    assert found == quotas
    assert list(found) == [LOADER, REPORTS, ADDRESSES]
    (request,) = brokers.asked("DescribeClientQuotas", node=2)
    assert (request.components, request.strict) == ((), False)


def test_filter_says_names_defaults_and_any(brokers, kafka):
    brokers.on("DescribeClientQuotas", described({}))
    assert kafka.describe_quotas(QuotaFilter("reports", DEFAULT)) == {}
    assert kafka.describe_quotas(QuotaFilter(ip=ANY, is_strict=True)) == {}
    first, second = brokers.asked("DescribeClientQuotas")
    assert [(item.entity_type, item.match_type, item.match) for item in first.components] == [
        ("user", 0, "reports"),
        ("client-id", 1, None),
    ]
    assert [(item.entity_type, item.match_type) for item in second.components] == [("ip", 2)]
    assert (first.strict, second.strict) == (False, True)


def test_changes_go_to_the_controller(brokers, kafka):
    brokers.controller = 2
    brokers.on("AlterClientQuotas", altered({REPORTS: 0, LOADER: 0}))
    changes = {
        REPORTS: {"consumer_byte_rate": 1_000_000, "request_percentage": None},
        LOADER: {"producer_byte_rate": 5.0},
        QuotaEntity(user="of whom nothing is asked"): {},
    }
    kafka.alter_quotas(changes, validate_only=True)
    (request,) = brokers.asked("AlterClientQuotas", node=2)
    assert request.validate_only
    assert [
        (
            [(item.entity_type, item.entity_name) for item in entry.entity],
            [(op.key, op.value, op.remove) for op in entry.ops],
        )
        for entry in request.entries
    ] == [
        ([("user", None), ("client-id", "loader")], [("producer_byte_rate", 5.0, False)]),
        (
            [("user", "reports")],
            [("consumer_byte_rate", 1_000_000.0, False), ("request_percentage", 0.0, True)],
        ),
    ]
    kafka.alter_quotas({})
    assert len(brokers.asked("AlterClientQuotas")) == 1


@pytest.mark.slow
def test_controller_that_moved_and_lost_answers_are_tried_again(brokers, kafka):
    def move(_):
        brokers.controller = 2
        return altered({REPORTS: 41})

    brokers.on("AlterClientQuotas", move, node=1)
    brokers.on("AlterClientQuotas", close(), altered({REPORTS: 0}), node=2)
    kafka.alter_quotas({REPORTS: {"consumer_byte_rate": 5}})
    assert len(brokers.asked("AlterClientQuotas", node=2)) == 2


def test_one_that_is_refused_is_named_and_the_others_are_set(brokers, kafka):
    brokers.on("AlterClientQuotas", altered({REPORTS: 0, LOADER: 42}))
    with pytest.raises(
        BrokerError, match=r"default user, client-id 'loader' at.*INVALID_REQUEST.*so it is"
    ) as caught:
        kafka.alter_quotas(
            {REPORTS: {"consumer_byte_rate": 5}, LOADER: {"producer_byte_rate": 1.5}}
        )
    assert set(caught.value.usable) == {REPORTS}


def test_missing_rights_are_named(brokers, kafka):
    brokers.on("DescribeClientQuotas", described({}, 31, "Cluster authorization failed."))
    with pytest.raises(BrokerError, match=r"\(31\): this user needs the right DESCRIBE_CONFIGS on"):
        kafka.describe_quotas()
    brokers.on("AlterClientQuotas", altered({REPORTS: 31}))
    with pytest.raises(BrokerError, match=r"\(31\): this user needs the right ALTER_CONFIGS on th"):
        kafka.alter_quotas({REPORTS: {"consumer_byte_rate": 5}})


def test_answer_about_no_entity_is_an_error(brokers, kafka):
    entry = DescribeClientQuotasResponse.Entry
    strange = entry(entity=(entry.Entity(entity_type="planet", entity_name="x"),))
    brokers.on("DescribeClientQuotas", DescribeClientQuotasResponse(entries=(strange,)))
    with pytest.raises(RemoteProtocolError, match="planet"):
        kafka.describe_quotas()


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({}, "expected a user, a client_id or an ip"),
        ({"user": ""}, "'user' is ''"),
        ({"client_id": 5}, "'client-id' is 5"),
        ({"user": ANY}, "'user' is 'ANY': it is for filters"),
        ({"ip": "10.0.0.1", "user": "a"}, "neither a user nor a client id goes with it"),
    ],
)
def test_entities_that_there_are_not(names, said):
    with pytest.raises(ConfigError, match=said):
        QuotaEntity(**names)


@pytest.mark.parametrize(
    ("entity", "quotas", "said"),
    [
        (REPORTS, {"byte_rate": 5}, "'byte_rate': expected one of producer_byte_rate"),
        (REPORTS, {"connection_creation_rate": 5}, "expected one of producer_byte_rate"),
        (ADDRESSES, {"producer_byte_rate": 5}, "expected one of connection_creation_rate"),
        (REPORTS, {"producer_byte_rate": -1}, "-1: expected a number, 0 or more"),
        (REPORTS, {"producer_byte_rate": float("nan")}, "nan: expected a number"),
        (REPORTS, {"producer_byte_rate": float("inf")}, "inf: expected a number"),
        (REPORTS, {"producer_byte_rate": "5"}, "'5': expected a number"),
        (REPORTS, {"producer_byte_rate": True}, "True: expected a number"),
        ("reports", {"producer_byte_rate": 5}, "'entity' is 'reports': expected QuotaEntity"),
    ],
)
def test_quotas_that_there_are_not(brokers, kafka, entity, quotas, said):
    with pytest.raises(ConfigError, match=said):
        kafka.alter_quotas({entity: quotas})
    assert brokers.asked("AlterClientQuotas") == []


def test_filters_are_checked_too():
    with pytest.raises(ConfigError, match="neither a user"):
        QuotaFilter(ip=ANY, client_id="a")


def test_five_quotas_are_known():
    assert len(QUOTAS) == len(set(QUOTAS)) == 5


def test_what_is_no_filter_and_no_change_is_refused_here(brokers, kafka):
    with pytest.raises(ConfigError, match=r"'wanted' is 'reports': expected QuotaFilter"):
        kafka.describe_quotas("reports")
    with pytest.raises(ConfigError, match="expected the quotas of each entity, in a dict"):
        kafka.alter_quotas([REPORTS])
    with pytest.raises(ConfigError, match=r"quotas of user 'reports'.*expected their values"):
        kafka.alter_quotas({REPORTS: 5})
    assert brokers.calls == []
