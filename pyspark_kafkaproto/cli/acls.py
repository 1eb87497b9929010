"""`kafkaproto acls`: who may do what: list, add, delete."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import wraps
from itertools import product
from typing import Any

import click

from pyspark_kafkaproto.cli.connection import confirmed, connected, yes_option
from pyspark_kafkaproto.cli.output import json_option, show, table_text, was_seen
from pyspark_kafkaproto.cli.typed import as_typed
from pyspark_kafkaproto.cluster import KafkaCluster
from pyspark_kafkaproto.cluster.admin import OPERATIONS, Acl, AclFilter
from pyspark_kafkaproto.cluster.admin.acls import CLUSTER_NAME, OPERATIONS_OF
from pyspark_kafkaproto.errors import ConfigError, KafkaProtoError
from pyspark_kafkaproto.wire.printable import counted

_COLUMNS = {
    "resource_type": "Resource",
    "resource_name": "Name",
    "pattern_type": "Pattern",
    "principal": "Principal",
    "host": "Host",
    "operation": "Operation",
    "permission": "Permission",
}
# What Kafka's own kafka-acls makes of these words.
_ROLES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "producer": {
        "topic": ("write", "describe", "create"),
        "transactional-id": ("write", "describe"),
    },
    "idempotent": {"cluster": ("idempotent-write",)},
    "consumer": {"topic": ("read", "describe"), "group": ("read",)},
}


class _Operation(click.Choice):  # type: ignore[type-arg]  # generic since click 8.2
    """An operation, also as Kafka's tools write it: DESCRIBE_CONFIGS, DescribeConfigs."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", str(value)).replace("_", "-")
        return super().convert(words.lower(), param, ctx)


@dataclass(frozen=True)
class _Chosen:
    """What the options say: resources as (type, name), and the rest of an ACL."""

    resources: tuple[tuple[str, str], ...]
    is_prefixed: bool
    principals: tuple[str, ...]
    hosts: tuple[str, ...]
    operations: tuple[str, ...]
    permission: str | None
    roles: tuple[str, ...]

    @property
    def says_anything(self) -> bool:
        """Whether any option is given."""
        said = self.resources, self.principals, self.hosts, self.operations
        return any(said) or self.permission is not None

    def rights(self) -> set[tuple[str, str, str]]:
        """(type, name, operation) of each."""
        if not self.roles:
            return {(*resource, what) for resource in self.resources for what in self.operations}
        return {
            (kind, name, operation)
            for role in self.roles
            for kind, name in (*self.resources, ("cluster", CLUSTER_NAME))
            for operation in _ROLES[role].get(kind, ())
        }

    def pattern_of(self, kind: str) -> str:
        """How the name of such a resource is meant."""
        return "prefixed" if self.is_prefixed and kind != "cluster" else "literal"


def _check_principals(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    for value in values:
        if not re.fullmatch("[^:]+:.+", value, re.DOTALL):
            name = value.rpartition(":")[2] or "reports"
            raise click.BadParameter(f"{value!r}: expected User:{name}", ctx, param)
    return values


def _names(option: str, of_what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(option, metavar="NAME", multiple=True, help=of_what)


_WHICH = (
    _names("--topic", "A topic; '*' is every one, here and below."),
    _names("--group", "A group."),
    _names("--transactional-id", "A transactional id."),
    click.option(
        "--cluster",
        is_flag=True,
        callback=lambda _, __, is_chosen: (CLUSTER_NAME,) if is_chosen else (),
        help="The cluster itself.",
    ),
    _names("--delegation-token", "A delegation token, by its id."),
    # As in kafka-acls: --user alone is whose rights they are to everybody who tries it.
    click.option(
        "--user-principal",
        "user",
        metavar="TYPE:NAME",
        multiple=True,
        help="A user, User:reports, for whom tokens are made; whose rights: --principal.",
    ),
    click.option("--prefixed", is_flag=True, help="All whose names begin with NAME."),
    click.option(
        "--principal",
        metavar="TYPE:NAME",
        multiple=True,
        callback=_check_principals,
        help="Whose rights: User:reports, or User:* for those of everybody.",
    ),
    click.option("--host", metavar="ADDRESS", multiple=True, help="Where they come from."),
    click.option(
        "--operation",
        type=_Operation(OPERATIONS, case_sensitive=False),
        metavar="OPERATION",
        multiple=True,
        help=f"{', '.join(OPERATIONS)}.",
    ),
    click.option("--allow/--deny", "is_allowed", default=None, help="What is allowed, or denied."),
)
_ROLE_OPTIONS = (
    click.option(
        "--producer",
        is_flag=True,
        help="write, describe, create on topics; write, describe on transactional ids.",
    ),
    click.option(
        "--idempotent",
        is_flag=True,
        help="With --producer: idempotent-write on the cluster, for brokers before Kafka 2.8.",
    ),
    click.option("--consumer", is_flag=True, help="read, describe on topics; read on groups."),
)


def _choosing(*options: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command what `options` say as `chosen`."""

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def run(*arguments: Any, **said: Any) -> Any:
            return command(*arguments, chosen=_chosen(said), **said)

        for option in reversed(options):
            run = option(run)
        return run

    return decorated


def _chosen(said: dict[str, Any]) -> _Chosen:
    """Take what the options of `_choosing` say out of `said`."""
    resources = [
        (kind, name) for kind in OPERATIONS_OF for name in said.pop(kind.replace("-", "_"))
    ]
    chosen = _Chosen(
        tuple(resources),
        said.pop("prefixed"),
        said.pop("principal"),
        said.pop("host"),
        said.pop("operation"),
        {None: None, True: "allow", False: "deny"}[said.pop("is_allowed")],
        tuple(role for role in _ROLES if said.pop(role, False)),
    )
    _check(chosen)
    return chosen


@click.group()
def acls() -> None:
    """Who may do what: list, add, delete.

    \b
    Examples:
      kafkaproto acls list
      kafkaproto acls list --topic orders
      kafkaproto acls add --principal User:reports --consumer --topic orders --group reports
      kafkaproto acls add --principal User:writer --operation write --topic orders- --prefixed
      kafkaproto acls delete --principal User:reports
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped


@acls.command("list")
@connected
@_choosing(*_WHICH)
@json_option
def list_(cluster: KafkaCluster, chosen: _Chosen, as_json: bool) -> None:
    """The ACLs that there are; those that bear upon a NAME: its own, of its prefixes, and of '*'.

    \b
    Examples:
      kafkaproto acls list
      kafkaproto acls list --topic orders
      kafkaproto acls list --principal User:reports --json
      kafkaproto acls list --topic orders- --prefixed      (those of this prefix alone)
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    pattern = "prefixed" if chosen.is_prefixed else "match" if chosen.resources else None
    found = _find(cluster, _filters(chosen, pattern))
    show(map(asdict, found), _COLUMNS, as_json=as_json)


@acls.command()
@connected
@_choosing(*_WHICH, *_ROLE_OPTIONS)
@json_option
@as_typed(resource_name="--topic")  # whose stars are refused
def add(cluster: KafkaCluster, chosen: _Chosen, as_json: bool) -> None:
    """Give rights to principals, or deny them; what is there already stays.

    Each of the operations is given for each of the resources. --producer and --consumer stand for
    what Kafka's own kafka-acls makes of them.

    \b
    Examples:
      kafkaproto acls add --principal User:reports --consumer --topic orders --group reports
      kafkaproto acls add --principal User:reports --operation read --topic orders --group reports
      kafkaproto acls add --principal User:writer --producer --topic orders --transactional-id job-1
      kafkaproto acls add --principal User:writer --operation write --topic orders- --prefixed
      kafkaproto acls add --principal User:guest --deny --operation all --topic salaries
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    if not chosen.principals:
        raise click.UsageError("say whose: --principal User:reports")
    if not chosen.resources:
        raise click.UsageError("say of what: --topic, --group, --cluster, …")
    if not (chosen.operations or chosen.roles):
        raise click.UsageError("say what: --operation, --producer or --consumer")
    wanted = {
        Acl(
            kind,
            name,
            pattern_type=chosen.pattern_of(kind),
            principal=principal,
            host=host,
            operation=operation,
            permission=chosen.permission or "allow",
        )
        for (kind, name, operation), principal, host in product(
            chosen.rights(), chosen.principals, chosen.hosts or ("*",)
        )
    }
    try:
        cluster.create_acls(wanted)
    except KafkaProtoError as error:
        if error.usable:
            _show_done(error.usable, "added", as_json=as_json)
        raise
    _show_done(wanted, "added", as_json=as_json)


@acls.command()
@connected
@_choosing(*_WHICH, *_ROLE_OPTIONS)
@yes_option
@json_option
def delete(cluster: KafkaCluster, chosen: _Chosen, is_sure: bool, as_json: bool) -> None:
    """Delete all ACLs that agree with what is given; they are shown first.

    A NAME is meant as it stands: '*' is what was given for every one, and is no pattern here.

    \b
    Examples:
      kafkaproto acls delete --principal User:reports
      kafkaproto acls delete --topic orders
      kafkaproto acls delete --principal User:reports --consumer --topic orders --group reports
      kafkaproto acls delete --topic orders- --prefixed --operation write --yes
    """  # noqa: D301 - \b is click's mark for a paragraph that is not to be wrapped
    if not chosen.says_anything:
        raise click.UsageError("say which: --principal, --topic, …")
    filters = _filters(chosen, None)
    # What was made just now is news to some brokers.
    found = cluster.believed(lambda: _find(cluster, filters), bool)
    if not found:
        raise click.ClickException("there is no such ACL: kafkaproto acls list shows all")
    if not is_sure:
        click.echo(table_text([asdict(acl) for acl in found], _COLUMNS), err=True, nl=False)
    confirmed(f"Delete {'it' if len(found) == 1 else f'these {len(found)}'}?", is_sure=is_sure)
    # Just what was shown, not what was made meanwhile. One that is gone when its turn comes was
    # deleted by an earlier try, or by somebody else.
    try:
        cluster.delete_acls({AclFilter.of(acl) for acl in found})
    except KafkaProtoError as error:
        if done := [acl for own in (error.usable or {}).values() for acl in own]:
            _show_done(done, "deleted", as_json=as_json)
        raise
    if was_seen(is_sure=is_sure, as_json=as_json):
        _count_done(found, "deleted")
    else:
        _show_done(found, "deleted", as_json=as_json)


def _show_done(done: Collection[Acl], result: str, *, as_json: bool) -> None:
    show([asdict(acl) | {"result": result} for acl in sorted(done)], _COLUMNS, as_json=as_json)
    _count_done(done, result)


def _count_done(done: Collection[Acl], result: str) -> None:
    click.echo(f"{counted(len(done), 'ACL')} {result}", err=True)


def _find(cluster: KafkaCluster, filters: Iterable[AclFilter]) -> list[Acl]:
    return sorted({acl for wanted in filters for acl in cluster.describe_acls(wanted)})


def _filters(chosen: _Chosen, pattern: str | None) -> list[AclFilter]:
    """What finds the ACLs that are chosen, names meant as `pattern` says (None: as given)."""
    rights: Collection[tuple[str | None, str | None, str | None]] = chosen.rights()
    if not chosen.roles:
        resources = chosen.resources or [(None, None)]
        rights = [(*each, what) for each, what in product(resources, chosen.operations or [None])]
    return [
        AclFilter(
            kind,
            name,
            pattern or (None if kind is None else chosen.pattern_of(kind)),
            principal,
            host,
            operation,
            chosen.permission or ("allow" if chosen.roles else None),
        )
        for (kind, name, operation), principal, host in product(
            rights, chosen.principals or [None], chosen.hosts or [None]
        )
    ]


# What does not go together


def _check(chosen: _Chosen) -> None:
    for kind, name in chosen.resources:
        if not name:
            option = "--user-principal" if kind == "user" else f"--{kind}"
            raise ConfigError(option, name, "expected a name")
    kinds = {kind for kind, _ in chosen.resources}
    if chosen.is_prefixed and not kinds - {"cluster"}:
        raise click.UsageError("--prefixed goes with names that begin others: --topic, --group, …")
    if chosen.is_prefixed and any(name == "*" for _, name in chosen.resources):
        raise click.UsageError("'*' is every name: --prefixed does not go with it")
    if chosen.roles:
        _check_roles(chosen, kinds)
    for kind in sorted(kinds):
        known = ("all", *OPERATIONS_OF[kind])
        for operation in chosen.operations:
            if operation not in known:
                raise click.UsageError(
                    f"{operation} means nothing for a {kind}: that takes {', '.join(known)}"
                )


def _check_roles(chosen: _Chosen, kinds: set[str]) -> None:
    if chosen.operations or chosen.permission == "deny":
        raise click.UsageError(
            "--producer and --consumer say what is allowed: neither --operation nor --deny goes "
            "with them"
        )
    if "idempotent" in chosen.roles and "producer" not in chosen.roles:
        raise click.UsageError("--idempotent goes with --producer")
    if "topic" not in kinds or ("consumer" in chosen.roles and "group" not in kinds):
        raise click.UsageError("--producer takes a --topic, --consumer a --topic and a --group")
    useful = {kind for role in chosen.roles for kind in _ROLES[role]} - {"cluster"}
    if others := sorted(kinds - useful):
        roles = " and ".join(f"--{role}" for role in chosen.roles)
        raise click.UsageError(f"{roles} gives no rights on a {others[0]}")
