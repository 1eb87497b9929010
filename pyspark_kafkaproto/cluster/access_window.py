"""The part of KafkaCluster about who may do what, and how much: ACLs, users, quotas.

What it asks with is loaded where it is asked: executors import this room at every start, and ask
for none of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from pyspark_kafkaproto.cluster.routing import Router

if TYPE_CHECKING:
    from pyspark_kafkaproto.cluster.admin.acls import Acl, AclFilter
    from pyspark_kafkaproto.cluster.admin.quotas import QuotaEntity, QuotaFilter
    from pyspark_kafkaproto.cluster.admin.users import ScramCredential


class AccessWindow:
    """What KafkaCluster does about ACLs, users and quotas.

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

    def delete_users(
        self, users: Collection[str], mechanisms: Collection[str] | None = None
    ) -> None:
        """Delete users' SCRAM credentials for `mechanisms` (None: for each that they have).

        Raises:
            BrokerError: a user has no such credentials; `usable` has (user, mechanism) of those
                that are deleted.
        """
        from pyspark_kafkaproto.cluster.admin.users import delete_users

        delete_users(self._router, users, mechanisms)

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
