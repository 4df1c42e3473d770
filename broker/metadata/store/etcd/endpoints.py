"""One channel for each endpoint, and the endpoint in use.

All calls and watches use the same endpoint until it gives no answer; then the next one. gRPC's own retries are off,
because they would send a transaction twice. A channel connects again by itself.
"""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import grpc.aio

from odradek.broker.metadata.store.etcd.messages import STATUS
from odradek.broker.metadata.store.etcd.options import EtcdOptions

Metadata = tuple[tuple[str, str], ...]
"""The headers of a call."""

_CHANNEL_OPTIONS = (
    ("grpc.use_local_subchannel_pool", 1),  # no connection is shared with another channel
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),  # a proxy for web pages is none for etcd
    ("grpc.max_receive_message_length", -1),  # what a watch has missed comes in one message
    ("grpc.max_send_message_length", -1),  # etcd checks the size itself
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # Ends a connection whose other side has disappeared without a word. etcd allows a ping every 5 seconds.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
)


class Endpoint:
    """One address and its channel. Calls take and return the bytes of messages."""

    def __init__(self, address: str, credentials: grpc.ChannelCredentials | None) -> None:
        self.address = address
        self._calls: dict[str, Any] = {}
        self.channel = (
            grpc.aio.insecure_channel(address, _CHANNEL_OPTIONS)
            if credentials is None
            else grpc.aio.secure_channel(address, credentials, _CHANNEL_OPTIONS)
        )

    async def call(self, method: str, request: bytes, seconds: float, metadata: Metadata = ()) -> bytes:
        """Send a request and return the response, within `seconds`. Raises `grpc.aio.AioRpcError`."""
        if method not in self._calls:
            self._calls[method] = self.channel.unary_unary(method)
        response: bytes = await self._calls[method](request, timeout=seconds, metadata=metadata, wait_for_ready=False)
        return response

    def stream(self, method: str, metadata: Metadata) -> Any:
        """Open a stream in both directions, a `grpc.aio.StreamStreamCall`."""
        return self.channel.stream_stream(method)(metadata=metadata, wait_for_ready=False)

    async def is_connected(self, seconds: float) -> bool:
        """Whether there is a connection. Waits up to `seconds` while one is being made, not after that has failed."""
        state = self.channel.get_state(try_to_connect=True)
        if state is grpc.ChannelConnectivity.READY:
            return True
        try:
            async with asyncio.timeout(seconds):
                while state in (grpc.ChannelConnectivity.IDLE, grpc.ChannelConnectivity.CONNECTING):
                    await self.channel.wait_for_state_change(state)
                    state = self.channel.get_state(try_to_connect=True)
        except TimeoutError:
            return False
        return state is grpc.ChannelConnectivity.READY

    async def why_not_connected(self, seconds: float) -> str:
        """Return the reason in the words of gRPC; "" if there is a connection now."""
        try:
            await self.call(STATUS, b"", seconds)
        except grpc.aio.AioRpcError as error:
            return str(error.details())
        return ""


class Endpoints:
    """All endpoints in the order of the configuration."""

    def __init__(self, options: EtcdOptions) -> None:
        credentials = (
            grpc.ssl_channel_credentials(options.ca_certificates, options.key, options.certificate)
            if options.uses_tls
            else None
        )
        self.all = [Endpoint(address, credentials) for address in options.endpoints]
        self._current = 0
        self._counts = options.counts

    @property
    def current(self) -> Endpoint:
        return self.all[self._current]

    def leave(self, endpoint: Endpoint) -> None:
        """Use the next endpoint, unless another call has left `endpoint` already."""
        if endpoint is self.current and len(self.all) > 1:
            self._current = (self._current + 1) % len(self.all)
            self._counts.endpoint_changes += 1

    async def close(self, seconds: float) -> None:
        """Wait up to `seconds` for running calls, and close all connections."""
        await asyncio.gather(*(endpoint.channel.close(grace=seconds) for endpoint in self.all))
