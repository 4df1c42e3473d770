"""One connection to one broker.

```
connecting --> negotiating --> authenticating --> open --> closed      open_connection() returns in "open"
TCP, TLS         ApiVersions     SASL, if set      |         ^
                                       ^           +---------+ close(), the peer, a timeout, bytes that are not Kafka's
                                       +-----------+ most of the session's lifetime is over, and a request is sent
```
Requests are written at once, and the broker responds in order; the in-flight table maps the correlation id to the
future of the response. A request that times out closes the connection, because the responses to later requests cannot
arrive before its own. When a connection closes, every request in flight fails with the same error, and `on_close` is
called.

While a connection authenticates again (KIP-368) its requests wait in memory, in their order, because a broker accepts
no other request between those of SASL. Those that were sent before are answered before.

Buffers: a request is encoded into a buffer of its own, which never changes after it was passed to the transport. A
response is decoded from the receive buffer. Only a response to Fetch contains views of it (`records`); they stay valid
as long as they are referenced (`retain`).
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from odradek.client.config import Address
from odradek.client.errors import (
    AuthenticationFailedError,
    ClientError,
    ClosedError,
    ConfigurationError,
    ConnectionLostError,
    NotKafkaError,
    RequestTimeoutError,
    broker_error,
)
from odradek.client.network.api_versions import ApiVersions, read_api_versions, version_to_retry
from odradek.client.network.outcome import outcome_of
from odradek.client.network.transport import Network, connect, describe, lost_error
from odradek.protocol import codec
from odradek.protocol.api import FETCH_KEY, NAMES, by_key
from odradek.protocol.errors import LocalProtocolError, ProtocolError, RemoteProtocolError
from odradek.protocol.framing import FrameReader, ReceiveArena
from odradek.protocol.header import API_VERSIONS_KEY, RequestHeader, decode_response, encode_request_header
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.plural import pluralize
from odradek.protocol.schema import Message, spec

if TYPE_CHECKING:
    from odradek.client.network.sasl import Authenticator

R = TypeVar("R", bound=Message)

SOFTWARE_NAME = "odradek"
SOFTWARE_VERSION = "0.1.0"

_SIZE = struct.Struct(">i")
_CORRELATION_ID = struct.Struct(">i")
_MAX_CORRELATION_ID = 0x7FFFFFFF
_ARENA_SIZE = 64 * 1024  # larger responses get a buffer of their own (odradek.protocol.framing)
_SASL_KEYS = (17, 36)  # SaslHandshake, SaslAuthenticate
_NOT_KAFKA = "Is this the port of a Kafka listener, and is it a plaintext one? With TLS, set security_protocol to SSL"
_NOT_KAFKA_OVER_TLS = "Is this the port of a Kafka listener? If it demands a certificate, set ssl_keystore_location"
_REFUSED = "The broker may have refused the credentials: its log has the reason"
_WITHOUT_SASL = "If this listener demands authentication, set security_protocol and sasl_mechanism"


class _InFlight:
    """A request that waits for its response."""

    __slots__ = ("api_key", "api_version", "future", "seconds", "timer")

    def __init__(
        self,
        api_key: int,
        api_version: int,
        future: asyncio.Future[Any],
        seconds: float,
        timer: asyncio.TimerHandle,
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.future = future
        self.seconds = seconds
        self.timer = timer


class Connection(asyncio.BufferedProtocol):
    """A connection, for callbacks and coroutines of one event loop.

    `name` is the broker's name in errors. `versions` is set when `open_connection` returns. `on_close`, if set, is
    called once, after all requests in flight have failed; `on_resume` is called after `is_congested` became false.
    """

    def __init__(self, name: str, client_id: str, request_timeout: float) -> None:
        self.name = name
        self.versions = ApiVersions(name, ())
        self.is_congested = False  # the peer reads slowly: further requests wait in memory
        self.on_close: Callable[[], None] | None = None
        self.on_resume: Callable[[], None] | None = None
        self._client_id = client_id
        self._request_timeout = request_timeout
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.WriteTransport | None = None
        self._reader = FrameReader(ReceiveArena(_ARENA_SIZE))
        self._in_flight: dict[int, _InFlight] = {}
        self._correlation_id = 0
        self._closed_by: ClientError | None = None
        self._authenticator: Authenticator | None = None
        self._authentication: asyncio.Task[None] | None = None  # of a connection that authenticates again
        self._authenticate_at: float | None = None  # the loop's time
        self._held: list[bytearray] | None = None  # requests during that, in their order
        self._has_answered = False  # a request other than ApiVersions
        self._gone: asyncio.Future[None] = self._loop.create_future()

    def rename(self, name: str) -> None:
        """Change the broker's name in errors."""
        self.name = self.versions.broker = name

    @property
    def is_open(self) -> bool:
        return self._transport is not None and self._closed_by is None

    @property
    def in_flight(self) -> int:
        """The number of requests without a response."""
        return len(self._in_flight)

    @property
    def certificate(self) -> bytes | None:
        """The peer's certificate (DER), which is verified; None without TLS."""
        tls = None if self._transport is None else self._transport.get_extra_info("ssl_object")
        return None if tls is None else cast("bytes | None", tls.getpeercert(binary_form=True))

    def send(
        self,
        request: Message,
        response: type[R],  # noqa: ARG002 - the type of the future
        *,
        version: int | None = None,
        timeout: float | None = None,
    ) -> asyncio.Future[R]:
        """Send a request at once and return the future of its response, decoded as `response`.

        `version` defaults to the highest that both sides support, `timeout` (s) to `request_timeout_ms`. The future
        fails with a TransportError if no response arrives. Cancelling it does not cancel the request. Raises, without
        sending, UnsupportedVersionError, and ConfigurationError for a number that is too large for the protocol.
        """
        future: asyncio.Future[R] = self._loop.create_future()
        if not self.is_open:
            future.set_exception(self._closed_by or self._lost("it is not connected"))
            return future
        api_key, version, frame = self._encode(request, version)
        seconds = self._request_timeout if timeout is None else timeout
        timer = self._loop.call_later(seconds, self._timed_out, api_key, seconds)
        self._in_flight[self._correlation_id] = _InFlight(api_key, version, future, seconds, timer)
        self._write(api_key, frame)
        return future

    def version_of(self, request: Message, at_most: int) -> int:
        """The highest version up to `at_most` of a request that both sides support. Raises UnsupportedVersionError."""
        key = spec(request.__class__).key
        assert key is not None, "a request has an API key"
        return self.versions.highest(key, at_most)

    def send_without_response(self, request: Message, *, version: int | None = None) -> None:
        """Send a request that has no response: Produce with acks=0. Raises ConnectionLostError."""
        if not self.is_open:
            raise self._closed_by or self._lost("it is not connected")
        api_key, _, frame = self._encode(request, version)
        self._write(api_key, frame)

    def restart_timeouts(self) -> None:
        """Give the requests in flight their whole time again, after the event loop did not run for a while."""
        for sent in self._in_flight.values():
            sent.timer.cancel()
            sent.timer = self._loop.call_later(sent.seconds, self._timed_out, sent.api_key, sent.seconds)

    def close(self, error: ClientError | None = None) -> None:
        """Close now; requests in flight fail with `error`. A second call does nothing."""
        if self._closed_by is not None:
            return
        self._closed_by = error or ClosedError("use a connection", "it was closed", broker=self.name)
        if self._transport is not None:
            self._transport.abort()
        else:
            self._end()

    async def wait_closed(self) -> None:
        """Wait until the transport is closed, after `close`."""
        await outcome_of(self._gone)

    async def negotiate(self, seconds: float) -> None:
        """Request the versions that the broker serves, before any other request. Raises ClientError."""
        question = ApiVersionsRequest(SOFTWARE_NAME, SOFTWARE_VERSION)
        newest = by_key(API_VERSIONS_KEY).max_version
        response = await self.send(question, ApiVersionsResponse, version=newest, timeout=seconds)
        known_to_both = version_to_retry(response)
        if known_to_both is not None:
            response = await self.send(question, ApiVersionsResponse, version=known_to_both, timeout=seconds)
        if response.error_code:
            raise broker_error(response.error_code, "request API versions", broker=self.name)
        self.versions = ApiVersions(self.name, response.api_keys, response.finalized_features)

    async def authenticate(self, authenticator: Authenticator, seconds: float) -> None:
        """Authenticate, with so many seconds for each response, and again before the session ends.

        Raises AuthenticationFailedError and other ClientErrors.
        """
        self._authenticator = authenticator
        lifetime = await authenticator.authenticate(self, seconds)
        self._authenticate_at = None if lifetime is None else self._loop.time() + lifetime

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - the reader has the size of the frame
        return self._reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self._reader.received(nbytes)
        try:
            while self._closed_by is None and (frame := self._reader.next_frame()) is not None:
                self._handle_response(frame)
        except ProtocolError as error:
            self.close(self._not_kafka(error))

    def pause_writing(self) -> None:
        self.is_congested = True

    def resume_writing(self) -> None:
        self.is_congested = False
        if self.on_resume is not None:
            self.on_resume()

    def eof_received(self) -> bool:
        return False  # the transport closes itself

    def connection_lost(self, exc: Exception | None) -> None:
        if isinstance(exc, ProtocolError):  # raised in get_buffer, for an invalid frame size
            self._closed_by = self._closed_by or self._not_kafka(exc)
        elif self._closed_by is None:
            lost = self._lost(describe(exc) if exc else "the broker closed the connection")
            self._closed_by = (lost_error(exc, lost.tried, self.name) if exc else None) or lost
        self._end()

    # Private.

    def _encode(self, request: Message, version: int | None) -> tuple[int, int, bytearray]:
        declared = spec(request.__class__)
        api_key = declared.key
        assert api_key is not None, "a request has an API key"
        if version is None:
            version = self.versions.highest(api_key)
        correlation_id = self._correlation_id = (self._correlation_id + 1) & _MAX_CORRELATION_ID
        frame = bytearray(_SIZE.size)
        header = RequestHeader(api_key, version, correlation_id, self._client_id)
        frame += encode_request_header(header, 2 if declared.is_flexible(version) else 1)
        try:
            codec.encode_into(request, version, frame)
        except LocalProtocolError as error:
            cure = "Use a value that fits the field of the protocol"
            raise ConfigurationError(f"send {NAMES[api_key]}", str(error), cure, broker=self.name) from error
        _SIZE.pack_into(frame, 0, len(frame) - _SIZE.size)
        return api_key, version, frame

    def _write(self, api_key: int, frame: bytearray) -> None:
        assert self._transport is not None
        if self._authenticate_at is not None and self._loop.time() >= self._authenticate_at and self._held is None:
            self._held = []
            self._authentication = self._loop.create_task(self._authenticate_again())
        if self._held is not None and api_key not in _SASL_KEYS:
            self._held.append(frame)
        else:
            self._transport.write(frame)

    async def _authenticate_again(self) -> None:
        assert self._authenticator is not None
        try:
            await self.authenticate(self._authenticator, self._request_timeout)
        except ClientError as error:
            error.broker = error.broker or self.name
            self.close(error)  # requests that wait fail with it
        held, self._held = self._held or [], None
        if self._closed_by is None and self._transport is not None:
            for frame in held:
                self._transport.write(frame)

    def _handle_response(self, frame: memoryview) -> None:
        if len(frame) < _CORRELATION_ID.size:
            raise RemoteProtocolError(f"a frame of {pluralize(len(frame), 'byte')}")
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        sent = self._in_flight.get(correlation_id)
        if sent is None:
            raise RemoteProtocolError(f"a response to request {correlation_id}, which is not in flight")
        self._has_answered = self._has_answered or sent.api_key != API_VERSIONS_KEY
        response: Message
        if sent.api_key == API_VERSIONS_KEY:
            response = read_api_versions(sent.api_version, frame)
        else:
            _, response = decode_response(sent.api_key, sent.api_version, frame)
        del self._in_flight[correlation_id]  # after an exception, it fails when the connection closes
        sent.timer.cancel()
        if sent.api_key == FETCH_KEY:
            self._reader.retain()
        if not sent.future.done():
            sent.future.set_result(response)

    def _timed_out(self, api_key: int, seconds: float) -> None:
        cause = f"no response within {seconds * 1000:.0f} ms"
        cure = self._not_kafka_cure if api_key == API_VERSIONS_KEY else ""
        self.close(RequestTimeoutError(f"send {NAMES[api_key]}", cause, cure, broker=self.name))

    @property
    def _not_kafka_cure(self) -> str:
        has_tls = self._transport is not None and self._transport.get_extra_info("ssl_object") is not None
        return _NOT_KAFKA_OVER_TLS if has_tls else _NOT_KAFKA

    def _lost(self, cause: str) -> ConnectionLostError:
        oldest = next(iter(self._in_flight.values()), None)
        tried = f"send {NAMES[oldest.api_key]}" if oldest else "use a connection"
        cure = ""
        if oldest is not None and oldest.api_key == API_VERSIONS_KEY:
            cure = self._not_kafka_cure
        elif oldest is not None and oldest.api_key in _SASL_KEYS:
            cure = _REFUSED
        elif oldest is not None and not self._has_answered:
            cure = _WITHOUT_SASL
        return ConnectionLostError(tried, cause, cure, broker=self.name)

    def _not_kafka(self, error: ProtocolError) -> NotKafkaError:
        return NotKafkaError("read a response", str(error), self._not_kafka_cure, broker=self.name)

    def _end(self) -> None:
        if self._gone.done():
            return
        self._gone.set_result(None)
        if self._authentication is not None:
            self._authentication.cancel()
        in_flight, self._in_flight = self._in_flight, {}
        for sent in in_flight.values():
            sent.timer.cancel()
            if not sent.future.done():
                sent.future.set_exception(cast("ClientError", self._closed_by))
        if self.on_close is not None:
            self.on_close()


async def open_connection(
    network: Network,
    address: Address,
    name: str,
    *,
    client_id: str,
    connect_timeout: float,
    request_timeout: float,
    authenticator: Authenticator | None = None,
) -> Connection:
    """Connect, negotiate versions and authenticate, with `connect_timeout` (s) for each response.

    Raises TransportError, AuthenticationFailedError, ConfigurationError or BrokerError.
    """
    connection = Connection(name, client_id, request_timeout)
    try:
        await connect(network, address, connection, name, connect_timeout)
        await connection.negotiate(connect_timeout)
        if authenticator is not None:
            await connection.authenticate(authenticator, connect_timeout)
    except AuthenticationFailedError as error:
        error.broker = error.broker or name
        connection.close()
        raise
    except BaseException:
        connection.close()  # it may have a transport already
        raise
    return connection
