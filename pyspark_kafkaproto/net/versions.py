"""What a broker speaks: versions of each API, and features, as its answer to ApiVersions has them.

Knows no socket. Protocol: KIP-35 and KIP-511 (ApiVersions), KIP-584 (features).
"""

from __future__ import annotations

from typing import Any

from pyspark_kafkaproto.error_codes import UNSUPPORTED_VERSION
from pyspark_kafkaproto.errors import LocalProtocolError, UnsupportedVersion
from pyspark_kafkaproto.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pyspark_kafkaproto.net.transport import Endpoint
from pyspark_kafkaproto.wire.path import UnwritableText


class BrokerVersions:
    """Of one broker; nothing is known before `note`.

    Attributes:
        features: finalized ones of the cluster, by name.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._ranges: dict[int, tuple[int, int]] = {}
        self.features: dict[str, int] = {}

    @property
    def are_known(self) -> bool:
        """Whether the broker has said anything."""
        return bool(self._ranges)

    def note(self, answer: ApiVersionsResponse) -> None:
        """What the broker says, in place of what it said before."""
        self._ranges = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
        known = answer.finalized_features if answer.finalized_features_epoch >= 0 else ()
        self.features = {item.name: item.max_version_level for item in known}

    def highest_for(self, request: type[Any], most: int | None = None, least: int = 0) -> int:
        """The highest version that both sides speak, not above `most`, nor below `least`.

        Raises:
            UnsupportedVersion: there is none; names both ranges.
        """
        ours = max(request.VERSIONS[0], least), request.VERSIONS[1]
        theirs = self._ranges.get(request.API_KEY)
        if theirs is None:
            raise UnsupportedVersion(f"broker {self._endpoint} does not offer {request.API_NAME}")
        highest: int = min(ours[1], theirs[1], ours[1] if most is None else most)
        if highest < max(ours[0], theirs[0]):
            raise UnsupportedVersion(
                f"broker {self._endpoint} speaks {request.API_NAME} {theirs[0]} to {theirs[1]}, "
                f"this package {ours[0]} to {ours[1] if most is None else most}"
            )
        return highest

    def to_ask_with(self) -> int:
        """A version of ApiVersions that an error answer named; 0 where it named none."""
        if ApiVersionsRequest.API_KEY not in self._ranges:
            return 0
        return self.highest_for(ApiVersionsRequest)

    def blame(self, request: type[Any], chosen: int, error: LocalProtocolError) -> None:
        """Raise UnsupportedVersion where the broker is too old for what the request holds."""
        if isinstance(error, UnwritableText):
            return
        least, most = self._ranges.get(request.API_KEY, (0, chosen))
        if chosen == most < request.VERSIONS.max:
            raise UnsupportedVersion(
                f"broker {self._endpoint} speaks {request.API_NAME} {least} to {most}, "
                f"which cannot carry what is asked: {error}"
            ) from error


def version_of_answer(response: type[Any], payload: memoryview, asked: int) -> int:
    """In which version an answer is: that of its request, but for a refusal of ApiVersions.

    Error 35 has the shape of version 0 there, as whoever asked may know no other (KIP-511).
    """
    if response is not ApiVersionsResponse:
        return asked
    is_refusal = int.from_bytes(payload[4:6], signed=True) == UNSUPPORTED_VERSION
    return 0 if is_refusal else asked
