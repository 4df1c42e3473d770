"""The seam between a follower and the broker that leads its partitions."""

from __future__ import annotations

from typing import Protocol

from odradek.protocol.messages.fetch import FetchRequest, FetchResponse


class LeaderConnection(Protocol):
    """A connection to one broker, opened with the first request and again after an error."""

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Send a Fetch with the highest version that both brokers have, at least 15, and return the response.

        Raises OSError or TimeoutError if there is none; the leader may have received the request. The records of the
        response are never overwritten.
        """
        ...

    def close(self) -> None:
        """End the connection; the fetcher calls it when it ends."""
        ...
