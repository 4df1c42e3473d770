"""The context of a request: its connection and its header."""

from __future__ import annotations

import msgspec

from odradek.broker.request.authentication import Authentication
from odradek.broker.security.principal import ANONYMOUS, Principal
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.header import RepeatedHeader

Address = tuple[str, int]
"""Host and port."""


class CloseConnection(Exception):  # noqa: N818 - an instruction, not an error
    """Raised by a handler to close the connection without a response. The message, for the log, is the reason."""


class Decisions(msgspec.Struct, eq=False):
    """What the authorizer allows a principal, as long as its rules have this version (`request.rights`)."""

    version: int
    principal: Principal
    allowed: set[tuple[Operation, ResourceType, str]] = set()


class ConnectionContext(msgspec.Struct, eq=False):
    """The state of one connection, for as long as it is open.

    `local_address` is the address that the client connected to; it gets this address as the broker's own if
    `advertised.listeners` is not set. The client's software is empty until its ApiVersions request names it (KIP-511).
    `last_header` is the header of the last request, or of an earlier one if that was unusually long. `is_disconnected`
    is true when the client has closed its side, so that long work for it can stop. `principal` is who its requests act
    for; `decisions` are those of the authorizer, if there is one. `authentication` is None on a listener without SASL,
    and `is_authenticated` false until the client has shown who it is. `throttle_ms`: for how long it must not be read
    after its next response, because a quota is over. `answer_bytes`: those of its large answers that it has not taken.
    """

    listener_name: str
    local_address: Address
    peer_address: Address
    client_software_name: str = ""
    client_software_version: str = ""
    last_header: RepeatedHeader | None = None
    is_disconnected: bool = False
    principal: Principal = ANONYMOUS
    authentication: Authentication | None = None
    decisions: Decisions | None = None
    throttle_ms: int = 0
    is_authenticated: bool = True
    answer_bytes: int = 0


class RequestContext(msgspec.Struct, eq=False):
    """The header of a request and the connection that it came on. `received_at` is monotonic, in seconds.

    `size` is that of the frame, in bytes. `loop_seconds` is the time that it took of the event loop, as far as it was
    measured: see `throttling`.
    """

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    received_at: float
    connection: ConnectionContext
    size: int = 0
    loop_seconds: float = 0.0

    @property
    def listener_name(self) -> str:
        return self.connection.listener_name

    @property
    def local_address(self) -> Address:
        return self.connection.local_address

    @property
    def peer_address(self) -> Address:
        return self.connection.peer_address

    @property
    def client_host(self) -> str:
        """The client's address as Kafka stores and shows it: as Java prints an address without a name."""
        return f"/{self.peer_address[0]}"

    @property
    def client_software_name(self) -> str:
        return self.connection.client_software_name

    @property
    def client_software_version(self) -> str:
        return self.connection.client_software_version
