"""The seams between a broker and its machine, beside clock and randomness.

| part | real side | used for |
|---|---|---|
| `new_files` | `OsFiles` | the files of a log directory |
| `new_threads` | `DiskThreads` | work that waits for the disk |
| `new_listener` | `Listener` | accepting connections |
| `network` | None: TCP | connecting to other brokers |
| `boot_id` | Linux's | whether the page cache has survived since the last start |

A simulation replaces all of them, and so can run several brokers in one process, in virtual time, without a disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from odradek.broker.clock import boot_id
from odradek.broker.config.endpoints import Endpoint
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.server.connections import Connections
from odradek.broker.server.listener import Listener
from odradek.broker.server.server import NewListener, ServerListener
from odradek.broker.storage.disk.files import Files, OsFiles

if TYPE_CHECKING:
    from odradek.broker.security.tls.listener_tls import ListenerTls
    from odradek.client.network.transport import Network


class Machine(NamedTuple):
    """The seams of one broker; see the module. Each log directory has its own files."""

    new_files: Callable[[], Files] = OsFiles
    new_threads: Callable[[asyncio.AbstractEventLoop], DiskThreads] = DiskThreads
    new_listener: NewListener = Listener
    network: Network | None = None
    boot_id: Callable[[], str] = boot_id


def on_ports(new_listener: NewListener, ports: Mapping[str, int]) -> NewListener:
    """Return `new_listener` for listeners that take these ports, by listener name, if their configured port is 0."""

    def create(
        endpoint: Endpoint, connections: Connections, metrics: Metrics, tls: ListenerTls | None = None
    ) -> ServerListener:
        port = endpoint.port or ports.get(endpoint.name, 0)
        return new_listener(endpoint._replace(port=port), connections, metrics, tls)

    return create
