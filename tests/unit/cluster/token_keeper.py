"""Fake brokers that keep delegation tokens, with the rules of Kafka's controller."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field

from pyspark_kafkaproto.messages.create_delegation_token import CreateDelegationTokenResponse
from pyspark_kafkaproto.messages.describe_delegation_token import DescribeDelegationTokenResponse
from pyspark_kafkaproto.messages.expire_delegation_token import ExpireDelegationTokenResponse
from pyspark_kafkaproto.messages.renew_delegation_token import RenewDelegationTokenResponse
from tests.fake_broker import Call, FakeCluster

Token = DescribeDelegationTokenResponse.Token
HOUR_MS = 3_600_000
PERIOD_MS, LIFETIME_MS = 24 * HOUR_MS, 168 * HOUR_MS  # the brokers' defaults
NOW_MS = 1_795_000_000_000


def hmac_of(token_id: str) -> bytes:
    return b"secret of " + token_id.encode()


def hmac_text(token_id: str) -> str:
    return base64.b64encode(hmac_of(token_id)).decode()


@dataclass
class TokenKeeper:
    """Answers as a cluster whose time stands still at `now_ms`.

    Args:
        user: who asks.
        late: how many times a node is asked, by its id, before it knows of any token.
    """

    user: str = "reports"
    now_ms: int = NOW_MS
    tokens: dict[bytes, Token] = field(default_factory=dict)  # by HMAC
    late: dict[int, int] = field(default_factory=dict)

    def keep(self, brokers: FakeCluster) -> TokenKeeper:
        brokers.on("CreateDelegationToken", self.create)
        brokers.on("RenewDelegationToken", self.renew)
        brokers.on("ExpireDelegationToken", self.expire)
        brokers.on("DescribeDelegationToken", self.describe)
        return self

    def create(self, call: Call) -> CreateDelegationTokenResponse:
        asked = call.request
        lifetime_ms = min(
            LIFETIME_MS, asked.max_lifetime_ms if asked.max_lifetime_ms > 0 else 2**62
        )
        token_id = f"id-{len(self.tokens) + 1}"
        token = Token(
            principal_type=asked.owner_principal_type or "User",
            principal_name=asked.owner_principal_name or self.user,
            token_requester_principal_type="User" if call.header.api_version >= 3 else "",
            token_requester_principal_name=self.user if call.header.api_version >= 3 else "",
            issue_timestamp=self.now_ms,
            expiry_timestamp=self.now_ms + min(PERIOD_MS, lifetime_ms),
            max_timestamp=self.now_ms + lifetime_ms,
            token_id=token_id,
            hmac=hmac_of(token_id),
            renewers=tuple(
                Token.Renewer(
                    principal_type=item.principal_type, principal_name=item.principal_name
                )
                for item in asked.renewers
            ),
        )
        self.tokens[token.hmac] = token
        return CreateDelegationTokenResponse(
            principal_type=token.principal_type,
            principal_name=token.principal_name,
            token_requester_principal_type=token.token_requester_principal_type,
            token_requester_principal_name=token.token_requester_principal_name,
            issue_timestamp_ms=token.issue_timestamp,
            expiry_timestamp_ms=token.expiry_timestamp,
            max_timestamp_ms=token.max_timestamp,
            token_id=token_id,
            hmac=token.hmac,
        )

    def renew(self, call: Call) -> RenewDelegationTokenResponse:
        token = self.tokens.get(call.request.hmac)
        if token is None:
            return RenewDelegationTokenResponse(error_code=62)
        if token.expiry_timestamp < self.now_ms:
            return RenewDelegationTokenResponse(error_code=66)
        asked_ms = call.request.renew_period_ms
        period_ms = min(PERIOD_MS, asked_ms if asked_ms > 0 else PERIOD_MS)
        return RenewDelegationTokenResponse(expiry_timestamp_ms=self._moved(token, period_ms))

    def expire(self, call: Call) -> ExpireDelegationTokenResponse:
        token = self.tokens.get(call.request.hmac)
        if token is None:
            return ExpireDelegationTokenResponse(error_code=62)
        after_ms = call.request.expiry_time_period_ms
        if after_ms < 0:
            del self.tokens[token.hmac]
            return ExpireDelegationTokenResponse(expiry_timestamp_ms=self.now_ms)
        return ExpireDelegationTokenResponse(expiry_timestamp_ms=self._moved(token, after_ms))

    def describe(self, call: Call) -> DescribeDelegationTokenResponse:
        if self.late.get(call.node_id):
            self.late[call.node_id] -= 1
            return DescribeDelegationTokenResponse()
        owners = call.request.owners
        named = None if owners is None else {item.principal_name for item in owners}
        found = (
            token
            for token in self.tokens.values()
            if named is None
            or named
            & {
                token.principal_name,
                token.token_requester_principal_name,
                *(item.principal_name for item in token.renewers),
            }
        )
        return DescribeDelegationTokenResponse(tokens=tuple(found))

    def _moved(self, token: Token, period_ms: int) -> int:
        expiry_ms = min(token.max_timestamp, self.now_ms + period_ms)
        self.tokens[token.hmac] = replaced(token, expiry_timestamp=expiry_ms)
        return expiry_ms


def replaced(token: Token, **changes: object) -> Token:
    return Token(**({name: getattr(token, name) for name in Token.NAMES} | changes))
