"""Client quotas: how much a user, a client id or an address may ask of the brokers (KIP-546).

A quota is set for an entity: a user, a client id, both together, or an address; each by its name or
for all without one of their own (the default). Brokers apply the one that says the most about a
client, and delay what goes beyond it; nothing is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from numbers import Real
from typing import Any, Final

from pyspark_kafkaproto.cluster.asking import Question, cut
from pyspark_kafkaproto.cluster.controller import ask_controller, ask_controller_once, refusal
from pyspark_kafkaproto.cluster.given import check_map
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.errors import BrokerError, ConfigError, RemoteProtocolError
from pyspark_kafkaproto.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)
from pyspark_kafkaproto.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

_OF_CLIENTS: Final = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
)
_OF_ADDRESSES: Final = ("connection_creation_rate",)
QUOTAS: Final = (*_OF_CLIENTS, *_OF_ADDRESSES)
"""Bytes per second, percent of a thread's time, changed partitions and connections per second."""

_USER, _CLIENT_ID, _IP = "user", "client-id", "ip"
_KINDS: Final = (_USER, _CLIENT_ID, _IP)
_ENTITIES_PER_REQUEST = 1000


class QuotaName(Enum):
    """What stands in a name's place."""

    DEFAULT = "default"
    """All that have no quota by their name."""
    ANY = "any"
    """In a filter: each name, and the default."""


Name = str | QuotaName | None
_MATCHES: Final = {QuotaName.DEFAULT: 1, QuotaName.ANY: 2}
_BY_NAME = 0


@dataclass(frozen=True, slots=True)
class QuotaEntity:
    """Whom a quota is for: `QuotaEntity(user="reports")`, `QuotaEntity(ip=QuotaName.DEFAULT)`.

    Args:
        user: a user, by the name of its principal.
        client_id: a `client.id`; with a user, that user's clients of this id.
        ip: an address that connections come from; neither user nor client id go with it.

    Raises:
        ConfigError: there is no such entity.
    """

    user: Name = None
    client_id: Name = None
    ip: Name = None

    def __post_init__(self) -> None:
        parts = _checked_parts(self.user, self.client_id, self.ip)
        for kind, name in parts.items():
            if name is QuotaName.ANY:
                raise ConfigError(kind, name.name, "it is for filters: expected a name or DEFAULT")
        if not parts:
            raise ConfigError("entity", None, "expected a user, a client_id or an ip")

    def __str__(self) -> str:
        return ", ".join(
            f"default {kind}" if isinstance(name, QuotaName) else f"{kind} {name!r}"
            for kind, name in _parts(self.user, self.client_id, self.ip).items()
        )

    def __lt__(self, other: QuotaEntity) -> bool:
        return self._order < other._order

    @property
    def _order(self) -> list[tuple[int, bool, str]]:
        """Users, then client ids, then addresses; the default before those with a name."""
        return [
            (_KINDS.index(kind), not isinstance(name, QuotaName), str(name))
            for kind, name in _parts(self.user, self.client_id, self.ip).items()
        ]


@dataclass(frozen=True, slots=True)
class QuotaFilter:
    """Which entities: those that have each part that is not None, and perhaps others.

    Args:
        user: a name, DEFAULT, or ANY of both.
        client_id: the same.
        ip: the same.
        is_strict: whether entities with further parts are left out: `QuotaFilter(user="a")` finds
            user a's quotas for single client ids too, a strict one those for the user alone.
    """

    user: Name = None
    client_id: Name = None
    ip: Name = None
    is_strict: bool = False

    def __post_init__(self) -> None:
        _checked_parts(self.user, self.client_id, self.ip)


Quotas = dict[str, float]
"""A quota's name, of `QUOTAS`, to its value."""


def describe_quotas(router: Router, wanted: QuotaFilter) -> dict[QuotaEntity, Quotas]:
    """What is set for each entity that `wanted` finds, sorted.

    Raises:
        BrokerError: this user may not see it.
        ConfigError: `wanted` is no filter.
    """
    given: object = wanted
    if not isinstance(given, QuotaFilter):
        raise ConfigError("wanted", given, "expected QuotaFilter(…)")
    component = DescribeClientQuotasRequest.Component
    request = DescribeClientQuotasRequest(
        components=tuple(
            component(entity_type=kind, match_type=_MATCHES[name], match=None)
            if isinstance(name, QuotaName)
            else component(entity_type=kind, match_type=_BY_NAME, match=name)
            for kind, name in _parts(wanted.user, wanted.client_id, wanted.ip).items()
        ),
        strict=wanted.is_strict,
    )
    return ask_controller_once(router, "describe quotas", request, _read_described)


def alter_quotas(
    router: Router,
    changes: Mapping[QuotaEntity, Mapping[str, float | None]],
    *,
    validate_only: bool = False,
) -> None:
    """Set quotas, or take them away (None); all others stay.

    Raises:
        BrokerError: an entity's quotas are refused, all of them; `usable` has the entities that
            are done.
        ConfigError: there is no such quota, or not for this entity, or not of such a value.
    """
    check_map("changes", changes, "the quotas of each entity")
    for entity, quotas in changes.items():
        _check_quotas(entity, quotas)

    def make_request(part: list[QuotaEntity]) -> AlterClientQuotasRequest:
        return AlterClientQuotasRequest(
            entries=tuple(_to_alter(entity, changes[entity]) for entity in part),
            validate_only=validate_only,
        )

    question = Question(
        "alter quotas",
        make_request,
        lambda answer, _: _read_altered(answer),
        cut(_ENTITIES_PER_REQUEST),
        is_trial=validate_only,
    )
    changed = [entity for entity, quotas in changes.items() if quotas]
    ask_controller(router, question, changed)


# What is asked


def _parts(user: Name, client_id: Name, ip: Name) -> dict[str, str | QuotaName]:
    named = zip(_KINDS, (user, client_id, ip), strict=True)
    return {kind: name for kind, name in named if name is not None}


def _checked_parts(user: Name, client_id: Name, ip: Name) -> dict[str, str | QuotaName]:
    parts = _parts(user, client_id, ip)
    for kind, name in parts.items():
        if not isinstance(name, (str, QuotaName)) or not name:
            raise ConfigError(kind, name, "expected a name, QuotaName.DEFAULT, or None")
    if _IP in parts and len(parts) > 1:
        raise ConfigError(_IP, ip, "neither a user nor a client id goes with it")
    return parts


def _check_quotas(entity: object, quotas: Mapping[str, float | None]) -> None:
    if not isinstance(entity, QuotaEntity):
        raise ConfigError("entity", entity, "expected QuotaEntity(…)")
    check_map(f"quotas of {entity}", quotas, "their values by name")
    known = _OF_CLIENTS if entity.ip is None else _OF_ADDRESSES
    for quota, value in quotas.items():
        if quota not in known:
            raise ConfigError(f"quota of {entity}", quota, f"expected one of {', '.join(known)}")
        # The broker says what it takes beyond that: whole numbers for rates of bytes, for one.
        given: object = value
        is_number = isinstance(given, Real) and not isinstance(given, bool)
        if value is not None and not (is_number and math.isfinite(value) and value >= 0):
            raise ConfigError(f"{quota} of {entity}", value, "expected a number, 0 or more")


def _to_alter(
    entity: QuotaEntity, quotas: Mapping[str, float | None]
) -> AlterClientQuotasRequest.Entry:
    entry = AlterClientQuotasRequest.Entry
    return entry(
        entity=tuple(
            entry.Entity(entity_type=kind, entity_name=name if isinstance(name, str) else None)
            for kind, name in _parts(entity.user, entity.client_id, entity.ip).items()
        ),
        ops=tuple(
            entry.Op(key=quota, value=float(value or 0), remove=value is None)
            for quota, value in quotas.items()
        ),
    )


# What is answered


def _read_described(answer: DescribeClientQuotasResponse) -> dict[QuotaEntity, Quotas]:
    if answer.error_code:
        subject = "the cluster's quotas"
        text = answer.error_message
        raise refusal(answer.error_code, "DescribeClientQuotas", subject, text)
    found = {
        _entity(item.entity): {own.key: own.value for own in item.values}
        for item in answer.entries or ()
    }
    return {entity: found[entity] for entity in sorted(found)}


def _read_altered(answer: AlterClientQuotasResponse) -> dict[QuotaEntity, BrokerError | None]:
    results: dict[QuotaEntity, BrokerError | None] = {}
    for item in answer.entries:
        entity = _entity(item.entity)
        results[entity] = None
        if item.error_code:
            text = item.error_message
            results[entity] = refusal(item.error_code, "AlterClientQuotas", str(entity), text)
    return results


def _entity(parts: Iterable[Any]) -> QuotaEntity:
    """An answer's entity.

    Raises:
        RemoteProtocolError: there is no such one.
    """
    names = {
        item.entity_type: QuotaName.DEFAULT if item.entity_name is None else item.entity_name
        for item in parts
    }
    try:
        if names.keys() <= set(_KINDS):
            return QuotaEntity(*map(names.get, _KINDS))
    except ConfigError:
        pass
    raise RemoteProtocolError(f"there is no entity {names}", where="client quotas")
