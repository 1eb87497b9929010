"""ACLs: who may do what with which resource; those that there are, and changes of them.

An ACL is about one resource, or about all whose names begin alike (prefixed, KIP-290); a resource
called `*` stands for all of its type. Words are Kafka's own, in small letters. What is asked for
goes to the cluster's authorizer (KIP-140): one that has none says so.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import KW_ONLY, astuple, dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from struct import unpack
from typing import Any, Final, TypeVar

from pyspark_kafkaproto.cluster.asking import Question, cut
from pyspark_kafkaproto.cluster.controller import ask_controller, ask_controller_once, refusal
from pyspark_kafkaproto.cluster.given import checked_each
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.error_codes import SECURITY_DISABLED
from pyspark_kafkaproto.errors import BrokerError, ConfigError, RemoteProtocolError
from pyspark_kafkaproto.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from pyspark_kafkaproto.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from pyspark_kafkaproto.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

CLUSTER_NAME: Final = "kafka-cluster"  # Kafka's word for the one resource of this type
_TYPES: Final = {
    "topic": 2,
    "group": 3,
    "cluster": 4,
    "transactional-id": 5,
    "delegation-token": 6,
    "user": 7,
}
_PATTERNS: Final = {"literal": 3, "prefixed": 4}
_OPERATIONS: Final = {
    "all": 2,
    "read": 3,
    "write": 4,
    "create": 5,
    "delete": 6,
    "alter": 7,
    "describe": 8,
    "cluster-action": 9,
    "describe-configs": 10,
    "alter-configs": 11,
    "idempotent-write": 12,
    "create-tokens": 13,
    "describe-tokens": 14,
    "two-phase-commit": 15,
}
_PERMISSIONS: Final = {"deny": 2, "allow": 3}
_ANY = 1
_LAST_NUMBER = 127
_FILTER_PATTERNS: Final = {"any": _ANY, "match": 2} | _PATTERNS

RESOURCE_TYPES: Final = tuple(_TYPES)
OPERATIONS: Final = tuple(_OPERATIONS)
OPERATIONS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "topic": (
        *("read", "write", "create", "delete", "alter", "describe"),
        *("describe-configs", "alter-configs"),
    ),
    "group": ("read", "delete", "describe", "describe-configs", "alter-configs"),
    "cluster": (
        *("create", "alter", "describe", "cluster-action"),
        *("describe-configs", "alter-configs", "idempotent-write"),
    ),
    "transactional-id": ("write", "describe", "two-phase-commit"),
    "delegation-token": ("describe",),
    "user": ("create-tokens", "describe-tokens"),
}
"""Those that mean something for a type, beside `all`; brokers take others, too."""

# The controller takes 10,000 changes at once, and a filter may find many.
_ACLS_PER_REQUEST = 1000
_FILTERS_PER_REQUEST = 100
_SINCE_USERS = 3  # the version that knows resources of the type user (KIP-373)
_NO_AUTHORIZER = (
    "the cluster has no authorizer: everybody may do everything until its brokers and controllers "
    "have authorizer.class.name"
)


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    """One right of one principal: `Acl("topic", "orders", principal="User:a", operation="read")`.

    Args:
        resource_type: of `RESOURCE_TYPES`.
        resource_name: its name, `*` for all of the type; a cluster's is `kafka-cluster`.
        pattern_type: literal, or prefixed: all whose names begin with `resource_name`.
        principal: whose, `User:reports`; `User:*` is everybody.
        host: the address that they come from, as Java writes it, `0:0:0:0:0:0:0:1` for `::1`; `*`:
            any.
        operation: of `OPERATIONS`.
        permission: allow, or deny, which wins over all that allow.
    """

    resource_type: str
    resource_name: str
    _: KW_ONLY
    pattern_type: str = "literal"
    principal: str
    host: str = "*"
    operation: str
    permission: str = "allow"

    def __str__(self) -> str:
        prefixed = "" if self.pattern_type == "literal" else f" ({self.pattern_type})"
        host = "" if self.host == "*" else f" from {self.host}"
        resource = f"{self.resource_type} {self.resource_name!r}{prefixed}"
        return f"{self.permission} {self.principal!r} {self.operation} on {resource}{host}"


@dataclass(frozen=True, slots=True)
class AclFilter:
    """Which ACLs: those that agree with each part that is not None.

    A word that is newer than those known here is its number in brackets, `(16)`, as ACLs tell it.
    `pattern_type` may also be `match`: all ACLs that bear upon the resource of that name, its own
    ones, those of a prefix of it, and those of `*`. All parts are compared as they stand: ACLs of
    `User:*` are not among those of `User:reports`.
    """

    resource_type: str | None = None
    resource_name: str | None = None
    pattern_type: str | None = None
    principal: str | None = None
    host: str | None = None
    operation: str | None = None
    permission: str | None = None

    @classmethod
    def of(cls, acl: Acl) -> AclFilter:
        """The filter that finds just `acl`."""
        return cls(*astuple(acl))

    def __lt__(self, other: AclFilter) -> bool:
        return self._order < other._order

    @property
    def _order(self) -> list[str]:
        return [part or "" for part in astuple(self)]


_A = TypeVar("_A", Acl, AclFilter)
_F = TypeVar("_F", DescribeAclsRequest, DeleteAclsRequest.Filter)


def describe_acls(router: Router, wanted: AclFilter) -> list[Acl]:
    """The ACLs that `wanted` finds, sorted.

    Raises:
        BrokerError: the cluster has no authorizer, or this user may not see its ACLs.
        ConfigError: `wanted` has a word that Kafka does not know.
    """
    _checked([wanted], AclFilter)
    request = _as_filter(DescribeAclsRequest, wanted)
    least = _least([wanted])
    return ask_controller_once(router, "describe ACLs", request, _read_described, least)


def create_acls(router: Router, acls: Collection[Acl]) -> None:
    """Make ACLs; one that is there already stays as it is.

    Raises:
        BrokerError: one was refused; `usable` has those that are made.
        ConfigError: one has a part that no broker takes.
    """
    wanted = _checked(acls, Acl)
    for acl in wanted:
        _check_can_be_made(acl)

    def make_request(part: list[Acl]) -> CreateAclsRequest:
        return CreateAclsRequest(creations=tuple(map(_to_create, part)))

    question = Question(
        f"create {_counted(wanted)}",
        make_request,
        _read_created,
        cut(_ACLS_PER_REQUEST),
        least=_least(wanted),
    )
    ask_controller(router, question, wanted)


def delete_acls(router: Router, filters: Collection[AclFilter]) -> dict[AclFilter, list[Acl]]:
    """Delete all ACLs that any of `filters` finds; `AclFilter()` finds every one.

    Returns:
        What was deleted for each filter, sorted. What an earlier try deleted, whose answer was
        lost, is not among it.

    Raises:
        BrokerError: a filter was refused; `usable` has what would be returned of the others.
        ConfigError: a filter has a word that Kafka does not know.
    """
    wanted = _checked(filters, AclFilter)

    def make_request(part: list[AclFilter]) -> DeleteAclsRequest:
        one = DeleteAclsRequest.Filter
        return DeleteAclsRequest(filters=tuple(_as_filter(one, item) for item in part))

    question = Question(
        "delete ACLs",
        make_request,
        _read_deleted,
        cut(_FILTERS_PER_REQUEST),
        least=_least(wanted),
    )
    return ask_controller(router, question, wanted)


def _least(items: Iterable[Acl | AclFilter]) -> int:
    return _SINCE_USERS if any(item.resource_type == "user" for item in items) else 0


def _counted(acls: Collection[Acl]) -> str:
    return f"ACL {next(iter(acls))}" if len(acls) == 1 else f"{len(acls)} ACLs"


# What is asked


def _checked(items: Collection[_A], kind: type[_A]) -> list[_A]:
    """`items`; what is none of them is refused, and so are words that Kafka does not know."""
    checked = checked_each(f"{kind.__name__}s", items, kind, f"{kind.__name__}(…)")
    is_filter = kind is AclFilter
    patterns = _FILTER_PATTERNS if is_filter else _PATTERNS
    for item in checked:
        for option, word, known in (
            ("resource_type", item.resource_type, _TYPES),
            ("pattern_type", item.pattern_type, patterns),
            ("operation", item.operation, _OPERATIONS),
            ("permission", item.permission, _PERMISSIONS),
        ):
            is_other = is_filter and (word is None or _newer(word, known) is not None)
            if word not in known and not is_other:
                raise ConfigError(option, word, f"expected one of {', '.join(known)}")
        for option, text in (
            ("resource_name", item.resource_name),
            ("principal", item.principal),
            ("host", item.host),
        ):
            if text == "" or not (isinstance(text, str) or (is_filter and text is None)):
                raise ConfigError(option, text, "expected a name")
    return checked


def _check_can_be_made(acl: Acl) -> None:
    kind, colon, name = acl.principal.partition(":")
    if not (kind and colon and name):
        raise ConfigError("principal", acl.principal, "expected its type, too: User:reports")
    if acl.resource_type == "cluster" and acl.resource_name != CLUSTER_NAME:
        raise ConfigError("resource_name", acl.resource_name, f"a cluster's is {CLUSTER_NAME}")
    if acl.resource_type == "topic" and "*" in acl.resource_name and acl.resource_name != "*":
        # Kafka takes it, and it is about no topic: whoever denies by it denies nothing.
        why = "no topic is called so: * alone is every topic; for all whose names begin alike give "
        why += "their beginning, prefixed (--prefixed)"
        raise ConfigError("resource_name", acl.resource_name, why)
    _check_host(acl.host)


def _check_host(host: str) -> None:
    """Refuse what Kafka takes and compares with nobody: whoever denies by it denies nothing."""
    if host == "*":
        return
    try:
        as_java = _java_text(ip_address(host))
    except ValueError:
        why = "expected an address, or *: brokers look no names up, and know no networks"
        raise ConfigError("host", host, why) from None
    if as_java != host:
        raise ConfigError("host", host, f"expected it as brokers compare it: {as_java}")


def _java_text(address: IPv4Address | IPv6Address) -> str:
    """As `InetAddress.getHostAddress` writes it."""
    if isinstance(address, IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    text = ":".join(f"{group:x}" for group in unpack("!8H", address.packed))
    return text if address.scope_id is None else f"{text}%{address.scope_id}"


def _to_create(acl: Acl) -> CreateAclsRequest.Creation:
    return CreateAclsRequest.Creation(
        resource_type=_TYPES[acl.resource_type],
        resource_name=acl.resource_name,
        resource_pattern_type=_PATTERNS[acl.pattern_type],
        principal=acl.principal,
        host=acl.host,
        operation=_OPERATIONS[acl.operation],
        permission_type=_PERMISSIONS[acl.permission],
    )


def _as_filter(kind: type[_F], wanted: AclFilter) -> _F:
    """DescribeAcls, or a filter of DeleteAcls: they have the same fields."""
    return kind(
        resource_type_filter=_number(wanted.resource_type, _TYPES),
        resource_name_filter=wanted.resource_name,
        pattern_type_filter=_number(wanted.pattern_type, _FILTER_PATTERNS),
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=_number(wanted.operation, _OPERATIONS),
        permission_type=_number(wanted.permission, _PERMISSIONS),
    )


def _number(word: str | None, known: Mapping[str, int]) -> int:
    if word is None:
        return _ANY
    newer = _newer(word, known)
    return known[word] if newer is None else newer


def _newer(word: object, known: Mapping[str, int]) -> int | None:
    """The number of `(16)`, as `_word` tells what Kafka has come up with since; None: it is none.

    What stands for several, or for what a broker does not know, is no word of an ACL.
    """
    found = re.fullmatch(r"\(([1-9][0-9]{0,2})\)", word) if isinstance(word, str) else None
    number = 0 if found is None else int(found[1])
    is_newer = max(known.values()) < number <= _LAST_NUMBER
    return number if is_newer else None


# What is answered


def _read_described(answer: DescribeAclsResponse) -> list[Acl]:
    if answer.error_code:
        raise _error(answer.error_code, "DescribeAcls", "the cluster's ACLs", answer.error_message)
    return sorted(
        _read_acl(resource, acl) for resource in answer.resources for acl in resource.acls
    )


def _read_created(answer: CreateAclsResponse, part: list[Acl]) -> dict[Acl, BrokerError | None]:
    _check_as_many("CreateAcls", part, answer.results)
    return {
        acl: _error(item.error_code, "CreateAcls", f"ACL {acl}", item.error_message)
        if item.error_code
        else None
        for acl, item in zip(part, answer.results, strict=True)
    }


def _read_deleted(
    answer: DeleteAclsResponse, part: list[AclFilter]
) -> dict[AclFilter, list[Acl] | BrokerError]:
    _check_as_many("DeleteAcls", part, answer.filter_results)
    return {
        wanted: _deleted(wanted, found)
        for wanted, found in zip(part, answer.filter_results, strict=True)
    }


def _deleted(wanted: AclFilter, found: DeleteAclsResponse.FilterResult) -> list[Acl] | BrokerError:
    if found.error_code:
        return _error(found.error_code, "DeleteAcls", f"{wanted}", found.error_message)
    done = sorted(_read_acl(item, item) for item in found.matching_acls if not item.error_code)
    for item in found.matching_acls:
        if item.error_code:
            others = f"deleted all the same: {', '.join(map(str, done))}" if done else ""
            text = "; ".join(filter(None, (item.error_message, others)))
            return _error(item.error_code, "DeleteAcls", f"ACL {_read_acl(item, item)}", text)
    return done


def _read_acl(resource: Any, right: Any) -> Acl:
    """From an answer's fields of the resource and of the right to it, which may be in one part."""
    return Acl(
        _word(resource.resource_type, _TYPES),
        resource.resource_name,
        pattern_type=_word(resource.pattern_type, _PATTERNS),
        principal=right.principal,
        host=right.host,
        operation=_word(right.operation, _OPERATIONS),
        permission=_word(right.permission_type, _PERMISSIONS),
    )


def _word(number: int, known: Mapping[str, int]) -> str:
    """Kafka's word; the number where it has come up with one since."""
    return next((word for word, own in known.items() if own == number), f"({number})")


def _check_as_many(api: str, asked: Collection[object], answered: Collection[object]) -> None:
    """Results are told apart by their order alone."""
    if len(asked) != len(answered):
        raise RemoteProtocolError(f"asked about {len(asked)}, answered {len(answered)}", where=api)


def _error(code: int, api: str, subject: str, message: str | None) -> BrokerError:
    text = _NO_AUTHORIZER if code == SECURITY_DISABLED else message
    return refusal(code, api, subject, text)
