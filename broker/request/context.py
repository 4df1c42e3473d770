"""What a handler is told about the connection and the request that it answers."""

from __future__ import annotations

import msgspec

from odradek.protocol.header import RepeatedHeader

Address = tuple[str, int]
"""Host and port."""


class CloseConnection(Exception):  # noqa: N818 - it is what to do, not what went wrong
    """Raised by a handler: the connection must be closed without a response. The message, for the log, says why."""


class ConnectionContext(msgspec.Struct, eq=False):
    """What is known of one connection for as long as it lives.

    `local_address` is the address that the client dialled, which it is told as the broker's own when nothing is
    advertised. The client's software is what its ApiVersions request said (KIP-511), empty until then. `last_header` is
    the header of its last request, or of an earlier one if that was unusually long. `has_gone` says that the client has
    closed its side: what takes long is not worth going on with.
    """

    listener_name: str
    local_address: Address
    peer_address: Address
    client_software_name: str = ""
    client_software_version: str = ""
    last_header: RepeatedHeader | None = None
    has_gone: bool = False


class RequestContext(msgspec.Struct, eq=False):
    """The header of a request and the connection that it came on. `received_at` is monotonic, in seconds."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    received_at: float
    connection: ConnectionContext

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
