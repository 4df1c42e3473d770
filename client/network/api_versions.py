"""The version of each API for one connection, negotiated once by ApiVersions (KIP-35, KIP-511).

```
client                                            broker
ApiVersions v4  ------------------------------->
                <-------------------------------  v4: every API that it serves, with its range
                <-------------------------------  or, if it has no v4: in v0, error 35, the range of ApiVersions
ApiVersions v(highest of that range)  --------->
                <-------------------------------  every API that it serves
```
Afterwards each request has the highest version that both sides support.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from odradek.client.errors import UnsupportedVersionError
from odradek.protocol.api import NAMES, by_key
from odradek.protocol.codec import decode
from odradek.protocol.errors import ErrorCode, RemoteProtocolError
from odradek.protocol.header import API_VERSIONS_KEY
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse, FinalizedFeatureKey
from odradek.protocol.schema import LAST_VERSION

_ERROR_CODE = struct.Struct(">h")
_BODY = 4  # after the correlation id: the response header of ApiVersions is v0 in all versions


class ApiVersions:
    """The version ranges of one broker, and the finalized features of its cluster when the connection was opened.

    `broker` is its name in errors.
    """

    __slots__ = ("_chosen", "_features", "_ranges", "broker")

    def __init__(self, broker: str, ranges: Iterable[ApiVersion], features: Iterable[FinalizedFeatureKey] = ()) -> None:
        self.broker = broker
        self._features = {feature.name: feature.max_version_level for feature in features}
        self._ranges = {served.api_key: (served.min_version, served.max_version) for served in ranges}
        self._chosen: dict[int, int] = {}

    def highest(self, api_key: int, at_most: int = LAST_VERSION, at_least: int = 0) -> int:
        """The highest version from `at_least` to `at_most` that both sides support. Raises UnsupportedVersionError."""
        chosen = self._chosen.get(api_key)
        if chosen is None:
            chosen = self._chosen[api_key] = self._choose(api_key, LAST_VERSION, 0)
        return chosen if at_least <= chosen <= at_most else self._choose(api_key, at_most, at_least)

    def feature_level(self, name: str) -> int:
        """The finalized level of a feature; 0 without one."""
        return self._features.get(name, 0)

    def _choose(self, api_key: int, at_most: int, at_least: int) -> int:
        api = by_key(api_key)
        low, high = self._ranges.get(api_key, (0, -1))
        lowest, highest = max(api.min_version, at_least), min(api.max_version, at_most)
        version = min(highest, high)
        if version >= max(lowest, low):
            return version
        theirs = f"the broker serves {low} to {high}" if api_key in self._ranges else "the broker does not serve it"
        ours = f"this call needs {lowest} to {highest}"
        raise UnsupportedVersionError(
            f"send {NAMES[api_key]}", f"{ours}, {theirs}", "Upgrade the older side", broker=self.broker
        )


def read_api_versions(version: int, frame: memoryview) -> ApiVersionsResponse:
    """Decode a response to ApiVersions of `version`, or of v0 after an error. Raises RemoteProtocolError."""
    try:
        (error_code,) = _ERROR_CODE.unpack_from(frame, _BODY)
    except struct.error:
        raise RemoteProtocolError("a response to ApiVersions that is shorter than its error code") from None
    if error_code == ErrorCode.UNSUPPORTED_VERSION:
        version = 0
    return decode(ApiVersionsResponse, version, frame, _BODY)


def version_to_retry(response: ApiVersionsResponse) -> int | None:
    """The version of ApiVersions for a second request; None unless the broker does not support ours."""
    if response.error_code != ErrorCode.UNSUPPORTED_VERSION:
        return None
    known = next((served for served in response.api_keys if served.api_key == API_VERSIONS_KEY), None)
    return min(known.max_version, by_key(API_VERSIONS_KEY).max_version) if known else 0
