"""Several processes on one machine (num.workers): the node id, ports and log directories of each. Pure functions.

Worker 0 has those of the configuration itself. So one worker more or less moves nothing, and a broker that runs as one
process finds what it wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Final, NamedTuple

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.endpoints import Endpoint
from odradek.broker.storage.names import worker_directory

NODE_IDS_APART: Final = 1000
"""Node ids of two workers of one machine differ by multiples of this, so node.id is below it."""
_MAX_PORT: Final = 65_535
_EVERY_INTERFACE: Final = ("", "0.0.0.0", "::")  # noqa: S104 - compared, not bound


class _Ports(NamedTuple):
    """The first of the ports that the workers have for one property, and where it is opened."""

    name: str
    host: str
    first: int

    def meets(self, other: _Ports, count: int) -> bool:
        """Whether two of `count` workers would open one port."""
        same_host = self.host == other.host or not {self.host, other.host}.isdisjoint(_EVERY_INTERFACE)
        return same_host and abs(self.first - other.first) < count


def node_id(first: int, worker: int) -> int:
    """Return the node id of a worker, for the one that is configured."""
    return first + NODE_IDS_APART * worker


def log_directory(configured: str, worker: int) -> str:
    """Return the log directory of a worker, for one that is configured."""
    return configured if worker == 0 else str(Path(configured, worker_directory(worker)))


def worker_properties(config: BrokerConfig, worker: int) -> dict[str, str]:
    """Return the properties that a worker has in place of those of `config`, which is the configuration of all."""
    if worker == 0:
        return {}
    number = str(node_id(config.node_id, worker))
    properties = {"node.id": number, "listeners": _moved(config.listeners, worker)}
    if "broker.id" in config.declared:
        properties["broker.id"] = number
    if config.advertised_listeners is not None:
        properties["advertised.listeners"] = _moved(config.advertised_listeners, worker)
    if config.metrics_port > 0:
        properties["metrics.port"] = str(config.metrics_port + worker)
    properties["log.dirs"] = ",".join(log_directory(each, worker) for each in config.log_dirs)
    return properties


def problems(config: BrokerConfig, *, read_only: bool = False) -> list[str]:
    """Return a sentence for each reason why `num.workers` processes cannot serve this configuration."""
    count = config.num_workers
    if count == 1:
        return []
    found = []
    if read_only:
        found.append("num.workers: a read-only broker is one process; set it to 1, and log.dirs to those of one worker")
    if config.node_id >= NODE_IDS_APART:
        found.append(
            f"node.id = {config.node_id}: with num.workers = {count} it is below {NODE_IDS_APART}, because worker k has"
            f" node.id + {NODE_IDS_APART} k"
        )
    advertised = [
        _Ports(f"advertised.listeners ({each})", each.host, each.port) for each in config.advertised_listeners or ()
    ]
    return [*found, *_port_problems(_bound_ports(config), count), *_beyond_the_last(advertised, count)]


def _bound_ports(config: BrokerConfig) -> list[_Ports]:
    ports = [_Ports(f"listeners ({each})", each.host, each.port) for each in config.listeners if each.port]
    if config.metrics_port > 0:
        ports.append(_Ports("metrics.port", config.metrics_host, config.metrics_port))
    return ports


def _port_problems(ports: Sequence[_Ports], count: int) -> Iterator[str]:
    yield from _beyond_the_last(ports, count)
    for one, other in combinations(ports, 2):
        if one.meets(other, count):
            yield (
                f"{one.name} and {other.name} are less than num.workers = {count} ports apart: the workers need the"
                f" ports {one.first} to {one.first + count - 1} and {other.first} to {other.first + count - 1}"
            )


def _beyond_the_last(ports: Sequence[_Ports], count: int) -> Iterator[str]:
    for each in ports:
        if each.first + count - 1 > _MAX_PORT:
            yield f"{each.name}: the last of num.workers = {count} workers would need port {each.first + count - 1}"


def _moved(endpoints: Sequence[Endpoint], worker: int) -> str:
    return ",".join(str(each._replace(port=each.port and each.port + worker)) for each in endpoints)
