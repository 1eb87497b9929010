"""The part of KafkaCluster about who may do what, and how much: ACLs, users, tokens, quotas.

What it asks with is loaded where it is asked: executors import this room at every start, and ask
for none of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from pyspark_kafkaproto.cluster.routing import Router, one_call

if TYPE_CHECKING:
    from pyspark_kafkaproto.cluster.admin.acls import Acl, AclFilter
    from pyspark_kafkaproto.cluster.admin.quotas import QuotaEntity, QuotaFilter
    from pyspark_kafkaproto.cluster.admin.tokens import DelegationToken, Hmac
    from pyspark_kafkaproto.cluster.admin.users import ScramCredential


class AccessWindow:
    """What KafkaCluster does about ACLs, users, delegation tokens and quotas.

    Changes are the controller's; brokers hear of them a moment later.
    """

    _router: Router

    # ACLs

    def describe_acls(self, wanted: AclFilter | None = None) -> list[Acl]:
        """The ACLs that `wanted` finds, sorted: `AclFilter("topic", "orders", "match")`; None: all.

        Raises:
            BrokerError: the cluster has no authorizer, or this user may not see its ACLs.
            ConfigError: `wanted` has a word that Kafka does not know.
        """
        from pyspark_kafkaproto.cluster.admin.acls import AclFilter, describe_acls

        return describe_acls(self._router, wanted or AclFilter())

    def create_acls(self, acls: Collection[Acl]) -> None:
        """Make ACLs; one that is there already stays as it is.

        Raises:
            BrokerError: one was refused; `usable` has those that are made.
            ConfigError: one has a part that no broker takes.
        """
        from pyspark_kafkaproto.cluster.admin.acls import create_acls

        create_acls(self._router, acls)

    def delete_acls(self, filters: Collection[AclFilter]) -> dict[AclFilter, list[Acl]]:
        """Delete all ACLs that any of `filters` finds; `AclFilter.of(acl)` finds one.

        Returns:
            What was deleted for each filter, sorted. What an earlier try deleted, whose answer was
            lost, is not among it.

        Raises:
            BrokerError: a filter was refused; `usable` has what would be returned of the others.
            ConfigError: a filter has a word that Kafka does not know.
        """
        from pyspark_kafkaproto.cluster.admin.acls import delete_acls

        return delete_acls(self._router, filters)

    # Users

    def describe_users(self, users: Collection[str] | None = None) -> dict[str, dict[str, int]]:
        """The SCRAM mechanisms of each user, with their iterations.

        Args:
            users: names; None: all who have SCRAM credentials.

        Raises:
            BrokerError: a user has none, or this user may not see them; `usable` has the others.
        """
        from pyspark_kafkaproto.cluster.admin.users import describe_users

        return describe_users(self._router, users)

    def set_users(self, credentials: Collection[ScramCredential]) -> None:
        """Make users, or give them other passwords; what is set for other mechanisms stays.

        Raises:
            BrokerError: one was refused; `usable` has (user, mechanism) of those that are set.
            ConfigError: a user is to have two passwords for one mechanism.
        """
        from pyspark_kafkaproto.cluster.admin.users import set_users

        set_users(self._router, credentials)

    @one_call
    def delete_users(
        self,
        users: Collection[str],
        mechanisms: Collection[str] | None = None,
        *,
        dry_run: bool = False,
    ) -> set[tuple[str, str]]:
        """Delete users' SCRAM credentials for `mechanisms` (None: for each that they have).

        Args:
            users: their names.
            mechanisms: of `SCRAM_MECHANISMS`.
            dry_run: whether to only tell what would be deleted.

        Returns:
            (user, mechanism) of what is deleted.

        Raises:
            BrokerError: users have no such credentials, all of whom are named, and nothing is
                deleted; or one was refused, and `usable` has what would be returned of the others.
        """
        from pyspark_kafkaproto.cluster.admin.users import delete_users

        return delete_users(self._router, users, mechanisms, dry_run=dry_run)

    # Delegation tokens

    def create_delegation_token(
        self,
        owner: str | None = None,
        renewers: Collection[str] = (),
        max_lifetime_s: float | None = None,
    ) -> DelegationToken:
        """Make a token that logs in as its owner: `token.login()` are the properties to do so.

        It is waited for until the brokers know it. Where an answer is lost and it is asked again,
        one that nobody holds is left, until it expires.

        Args:
            owner: whom it stands for, `User:reports`; None: who asks.
            renewers: who may renew and expire it beside its owner, `User:scheduler`.
            max_lifetime_s: when it ends for good, at most what the brokers allow
                (`delegation.token.max.lifetime.ms`); None: just that. It expires after
                `delegation.token.expiry.time.ms` unless it is renewed before.

        Raises:
            BrokerError: tokens are switched off, this login may not ask for any, or the right to
                make some for `owner` is missing.
            ConfigError: a principal or the lifetime is none.
        """
        from pyspark_kafkaproto.cluster.admin.tokens import create_delegation_token

        return create_delegation_token(self._router, owner, renewers, max_lifetime_s)

    def renew_delegation_token(self, token: Hmac, period_s: float | None = None) -> int:
        """Have a token expire later, and not beyond its end.

        Args:
            token: it, or its HMAC in base64.
            period_s: from now on, at most what the brokers give; None: just that.

        Returns:
            When it expires, in milliseconds since 1970.

        Raises:
            BrokerError: there is no such token, it has expired, or this user is neither its owner
                nor one of its renewers.
            ConfigError: it is no HMAC, or no period.
        """
        from pyspark_kafkaproto.cluster.admin.tokens import renew_delegation_token

        return renew_delegation_token(self._router, token, period_s)

    def expire_delegation_token(self, token: Hmac, after_s: float | None = None) -> int | None:
        """Have a token expire sooner: nobody logs in with it then.

        Connections that did stay until it would have expired before.

        Args:
            token: it, or its HMAC in base64.
            after_s: from now on; None: at once.

        Returns:
            When it expires, in milliseconds since 1970; None: it is gone.

        Raises:
            BrokerError: there is no such token, it has expired, or this user is neither its owner
                nor one of its renewers.
            ConfigError: it is no HMAC, or no time.
        """
        from pyspark_kafkaproto.cluster.admin.tokens import expire_delegation_token

        return expire_delegation_token(self._router, token, after_s)

    def describe_delegation_tokens(
        self, owners: Collection[str] | None = None
    ) -> list[DelegationToken]:
        """The tokens that this user may see, with their HMACs, by owner and age.

        Those are tokens that it owns, requested or may renew, and those of users on whom it has
        DESCRIBE_TOKENS; others are left out without a word.

        Args:
            owners: principals (`User:reports`): tokens that one of them owns, requested or may
                renew; None: all.

        Raises:
            BrokerError: tokens are switched off, or this login may not ask for any.
            ConfigError: one of `owners` is no principal.
        """
        from pyspark_kafkaproto.cluster.admin.tokens import describe_delegation_tokens

        return describe_delegation_tokens(self._router, owners)

    # Quotas

    def describe_quotas(
        self, wanted: QuotaFilter | None = None
    ) -> dict[QuotaEntity, dict[str, float]]:
        """What is set for each entity that `wanted` finds, sorted; None: all.

        Raises:
            BrokerError: this user may not see it.
        """
        from pyspark_kafkaproto.cluster.admin.quotas import QuotaFilter, describe_quotas

        return describe_quotas(self._router, wanted or QuotaFilter())

    def alter_quotas(
        self,
        changes: Mapping[QuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
    ) -> None:
        """Set quotas, or take them away (None); all others stay.

        Args:
            changes: `{QuotaEntity(user="reports"): {"consumer_byte_rate": 1_000_000}}`: bytes per
                second, percent of a thread's time (`request_percentage`), changed partitions and
                connections per second.
            validate_only: whether to only ask if it could be done.

        Raises:
            BrokerError: an entity's quotas are refused, all of them; `usable` has the entities
                that are done.
            ConfigError: there is no such quota, or not for this entity, or not of such a value.
        """
        from pyspark_kafkaproto.cluster.admin.quotas import alter_quotas

        alter_quotas(self._router, changes, validate_only=validate_only)
