"""The settings of brokers and topics that fake brokers tell and change."""

from __future__ import annotations

from pyspark_kafkaproto.cluster import Change
from pyspark_kafkaproto.error_codes import TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION
from pyspark_kafkaproto.messages.describe_configs import DescribeConfigsResponse
from pyspark_kafkaproto.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from tests.unit.cluster.admin.test_reassignments import LIST, under_way

ALTER, DESCRIBE = "IncrementalAlterConfigs", "DescribeConfigs"
OUT, IN = "leader.replication.throttled", "follower.replication.throttled"
_TYPES = {2: "topic", 4: "broker"}
_NUMBERS = {"topic": 2, "broker": 4}


def keep_settings(brokers):
    """What is set for whom: (type, name) to settings; changes are made there."""
    there = {}

    def describe(call):
        part = DescribeConfigsResponse.Resource
        return DescribeConfigsResponse(
            results=tuple(
                part(
                    resource_type=item.resource_type,
                    resource_name=item.resource_name,
                    configs=tuple(
                        part.Config(
                            name=name,
                            value=value,
                            config_source={2: 1, 4: 2}[item.resource_type],
                        )
                        for name, value in there.get(
                            (_TYPES[item.resource_type], item.resource_name), {}
                        ).items()
                        if item.configuration_keys is None or name in item.configuration_keys
                    ),
                )
                for item in call.request.resources
            )
        )

    def alter(call):
        part = IncrementalAlterConfigsResponse.Resource
        for item in call.request.resources:
            own = there.setdefault((_TYPES[item.resource_type], item.resource_name), {})
            for config in item.configs:
                change(own, config.name, config.value, Change(config.config_operation))
        return IncrementalAlterConfigsResponse(
            responses=tuple(
                part(resource_type=item.resource_type, resource_name=item.resource_name)
                for item in call.request.resources
            )
        )

    brokers.on(LIST, under_way())
    brokers.on(DESCRIBE, describe)
    brokers.on(ALTER, alter)
    return there


def change(own, name, value, how):
    """What a controller makes of a change; a list that was emptied is still set."""
    listed = [entry for entry in own.get(name, "").split(",") if entry]
    match how:
        case Change.DELETE:
            own.pop(name, None)
        case Change.SET:
            own[name] = value
        case Change.APPEND:
            assert "*" not in listed, "refused: all of them, and some"
            own[name] = ",".join(dict.fromkeys([*listed, *value.split(",")]))
        case Change.SUBTRACT:
            own[name] = ",".join(entry for entry in listed if entry not in value.split(","))


def rates(rate):
    return {f"{OUT}.rate": rate, f"{IN}.rate": rate}


def refuse_topic(brokers, api, name):
    """Have this of one topic refused, as for want of a right, and all else be answered."""
    there = brokers._scripts[api, None][0]

    def said(call):
        asked = call.request.resources
        refused = [
            item
            for item in asked
            if (item.resource_type, item.resource_name) == (_NUMBERS["topic"], name)
        ]
        others = tuple(item for item in asked if item not in refused)
        answer = there(call._replace(request=type(call.request)(resources=others)))
        field = "responses" if api == ALTER else "results"
        part = type(answer).Resource
        results = [
            part(
                error_code=TOPIC_AUTHORIZATION_FAILED,
                error_message="not you",
                resource_type=item.resource_type,
                resource_name=item.resource_name,
            )
            for item in refused
        ]
        return type(answer)(**{field: (*getattr(answer, field), *results)})

    brokers.on(api, said)


def refuse_gone_topics(brokers):
    """As brokers do: of a topic that is not there there are no settings."""
    part = IncrementalAlterConfigsResponse.Resource
    described = DescribeConfigsResponse.Resource
    for api, answer, make in (
        (ALTER, lambda items: IncrementalAlterConfigsResponse(responses=items), part),
        (DESCRIBE, lambda items: DescribeConfigsResponse(results=items), described),
    ):
        there = brokers._scripts[api, None][0]

        def said(call, there=there, answer=answer, make=make):
            gone = [
                item
                for item in call.request.resources
                if item.resource_type == _NUMBERS["topic"]
                and item.resource_name not in brokers.topics
            ]
            if not gone:
                return there(call)
            assert len(gone) == len(call.request.resources)
            return answer(
                tuple(
                    make(
                        error_code=UNKNOWN_TOPIC_OR_PARTITION,
                        resource_type=item.resource_type,
                        resource_name=item.resource_name,
                    )
                    for item in gone
                )
            )

        brokers.on(api, said)
