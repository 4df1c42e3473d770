"""`python -m demo.three_brokers`, or `make cluster`: an etcd and three brokers on this machine, until Ctrl-C.

The brokers listen on three ports from 9092 on and have the racks a, b and c. Their logs, etcd's data and all output are
under `data-cluster/`, and are used again at the next start. An etcd of at least 3.6 on the PATH is used; else one is
built, which takes two minutes once and needs the Go module proxy.
"""

from __future__ import annotations

import argparse
import signal
import socket
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from demo.processes import Processes, StartError
from demo.walk_through import shown_interpreter
from tests.peers import etcd
from tests.peers.server import free_port

RACKS = {1: "a", 2: "b", 3: "c"}
_HOST = "127.0.0.1"
_LAST_PORT = 65_535 - len(RACKS) + 1
_PROPERTIES = str(Path(__file__).parents[1] / "config" / "cluster.properties")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demo.three_brokers", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--port", type=int, default=9092, help="of the first broker (default: %(default)s)")
    parser.add_argument("--data", type=Path, default=Path("data-cluster"), help="directory (default: %(default)s)")
    arguments = parser.parse_args()
    if not 0 < arguments.port <= _LAST_PORT:
        parser.error(f"--port: {arguments.port} is not between 1 and {_LAST_PORT}")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)  # as Ctrl-C
    try:
        _run({node_id: arguments.port + node_id - 1 for node_id in RACKS}, arguments.data)
    except StartError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
    return 0


def _run(ports: dict[int, int], directory: Path) -> None:
    """Start everything, and run until interrupted. Raises StartError."""
    for port in ports.values():
        _check_port(port, min(ports.values()))
    directory.mkdir(exist_ok=True)
    etcd_binary = _etcd_binary()
    processes = Processes()
    with ExitStack() as stack:
        stack.callback(processes.stop)
        endpoint = _start_etcd(processes, etcd_binary, directory)
        for node_id, port in ports.items():
            _start_broker(processes, node_id, port, endpoint, directory)
        _print_guide(processes, ports, endpoint, directory)
        processes.watch()


def _check_port(port: int, first: int) -> None:
    """Raise StartError if a broker could not listen on this port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the broker does: old connections do not matter
        try:
            probe.bind((_HOST, port))
        except OSError as error:
            raise StartError(
                f"Port {port} of {_HOST} cannot be used ({error.strerror}): end the program that listens there, or"
                f" choose three ports from another one than {first} on with --port."
            ) from None


def _etcd_binary() -> str:
    """Return the path of etcd, which may be built first. Raises StartError."""
    print("etcd (the first time it is built, which takes minutes) …", flush=True)
    try:
        return etcd.binary()
    except (pytest.skip.Exception, pytest.fail.Exception) as error:
        raise StartError(f"There is no etcd: install version 3.6 or later on the PATH. {error}") from None


def _start_etcd(processes: Processes, binary: str, directory: Path) -> str:
    """Start etcd on free ports, and return its endpoint."""
    client, peer, health = (f"{_HOST}:{free_port()}" for _ in range(3))
    options = {
        "name": "etcd",
        "data-dir": str(directory / "etcd"),
        "listen-client-urls": f"http://{client}",
        "advertise-client-urls": f"http://{client}",
        "listen-peer-urls": f"http://{peer}",
        "initial-advertise-peer-urls": f"http://{peer}",
        "initial-cluster": f"etcd=http://{peer}",
        "listen-metrics-urls": f"http://{health}",
        "auto-compaction-retention": "1h",
    }
    flags = [f"--{name}={value}" for name, value in options.items()]
    processes.start("etcd", [binary, *flags], directory / "etcd.log", f"http://{health}/health")
    return client


def _start_broker(processes: Processes, node_id: int, port: int, endpoint: str, directory: Path) -> None:
    print(f"broker {node_id} …", flush=True)
    metrics_port = free_port()
    properties = {
        "node.id": str(node_id),
        "broker.rack": RACKS[node_id],
        "listeners": f"PLAINTEXT://{_HOST}:{port}",
        "log.dirs": str(directory / str(node_id)),
        "metadata.etcd.endpoints": endpoint,
        "metrics.port": str(metrics_port),
    }
    overrides = [part for name, text in properties.items() for part in ("--override", f"{name}={text}")]
    command = [sys.executable, "-m", "odradek", "broker", "--config", _PROPERTIES, *overrides]
    processes.start(
        f"broker-{node_id}", command, directory / f"broker-{node_id}.log", f"http://{_HOST}:{metrics_port}/readyz"
    )


def _print_guide(processes: Processes, ports: dict[int, int], endpoint: str, directory: Path) -> None:
    bootstrap = ",".join(f"{_HOST}:{port}" for port in ports.values())
    pids = "\n".join(f"  broker {node_id}  kill -9 {processes.pid(f'broker-{node_id}')}" for node_id in ports)
    command = shown_interpreter().with_name("odradek")
    print(
        f"""
A cluster of three brokers serves {bootstrap}; etcd is at {endpoint}.

  {command} topics create --bootstrap-server {bootstrap} --topic orders --replication-factor 3
  {command} topics describe --bootstrap-server {bootstrap} --topic orders

Kill one, and look again: another leads after broker.session.timeout.ms. Enter starts what has ended. The output of
each is in {directory}/.

{pids}
  etcd      kill -9 {processes.pid("etcd")}

Ctrl-C stops all.
""",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
