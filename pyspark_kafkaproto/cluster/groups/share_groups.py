"""Share groups (KIP-932): members, which are given records: several may read one partition."""

from __future__ import annotations

from collections.abc import Collection

from pyspark_kafkaproto.cluster.groups.described import SHARE, DescribedGroup, Member
from pyspark_kafkaproto.cluster.groups.describing import assigned, find_described
from pyspark_kafkaproto.cluster.routing import Router
from pyspark_kafkaproto.messages.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)


def find_share_groups(router: Router, groups: Collection[str]) -> dict[str, DescribedGroup | None]:
    """Those of `groups` that are share groups; None for the others."""
    return find_described(router, groups, ShareGroupDescribeRequest, _share_group)


def _share_group(item: ShareGroupDescribeResponse.Group) -> DescribedGroup:
    members = tuple(
        Member(
            member.member_id,
            None,
            member.client_id,
            member.client_host,
            assigned(member.assignment),
            assigned(member.assignment),
            member.member_epoch,
            is_classic=False,
        )
        for member in item.members
    )
    return DescribedGroup(
        item.group_id,
        SHARE,
        item.group_state,
        SHARE,
        item.assignor_name,
        item.group_epoch,
        members,
        item.assignment_epoch,
    )
