"""`python -m demo.three_brokers`, or `make cluster`: an etcd and three brokers on this machine, until Ctrl-C.

The brokers listen on three ports from 9092 on and have the racks a, b and c. Their logs, etcd's data and all output are
under `data-cluster/`, and are used again at the next start. An etcd of at least 3.6 on the PATH is used; else one is
built, which takes two minutes once and needs the Go module proxy.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.peers import etcd
from tests.peers.server import free_port

DIRECTORY = Path("data-cluster")
RACKS = {1: "a", 2: "b", 3: "c"}
_PROPERTIES = "config/cluster.properties"
_START_SECONDS = 60
_STOP_SECONDS = 40


class StartError(Exception):
    """A process did not start; the message has the reason, or the file with its output."""


class Processes:
    """The processes by name, with the pages that show that they serve."""

    def __init__(self) -> None:
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, command: Sequence[str], health_url: str) -> None:
        """Start a process, and return when its page answers. Raises StartError."""
        output = DIRECTORY / f"{name}.log"
        with output.open("ab") as file:
            # In a session of its own: Ctrl-C is for this program alone, which stops the processes in order.
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
            )
        self._processes[name] = process
        give_up_at = time.monotonic() + _START_SECONDS
        while not _answers(health_url):
            if process.poll() is not None:
                raise StartError(f"{name} has ended with status {process.returncode}: see {output}")
            if time.monotonic() > give_up_at:
                raise StartError(f"{name} does not serve after {_START_SECONDS} s: see {output}")
            time.sleep(0.1)

    def pid(self, name: str) -> int:
        return self._processes[name].pid

    def report_ends(self) -> None:
        """Print each process that ends, until interrupted."""
        running = dict(self._processes)
        while True:
            for name, process in tuple(running.items()):
                if process.poll() is not None:
                    del running[name]
                    print(f"{name} has ended (status {process.returncode})", flush=True)
            time.sleep(0.2)

    def stop(self) -> None:
        """End the brokers, which need etcd for it, then etcd; kill what does not end."""
        etcd_alone = {name: process for name, process in self._processes.items() if name == "etcd"}
        brokers = {name: process for name, process in self._processes.items() if name != "etcd"}
        for group in (brokers, etcd_alone):
            for process in group.values():
                process.terminate()
            for process in group.values():
                try:
                    process.wait(_STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demo.three_brokers", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--port", type=int, default=9092, help="of the first broker (default: %(default)s)")
    first_port = parser.parse_args().port
    DIRECTORY.mkdir(exist_ok=True)
    ports = {node_id: first_port + node_id - 1 for node_id in RACKS}
    processes = Processes()
    with ExitStack() as stack:
        stack.callback(processes.stop)
        try:
            endpoint = _start_etcd(processes)
            for node_id, port in ports.items():
                _start_broker(processes, node_id, port, endpoint)
        except StartError as error:
            print(error, file=sys.stderr)
            return 1
        _print_guide(processes, ports, endpoint)
        try:
            processes.report_ends()
        except KeyboardInterrupt:
            print("\nstopping", flush=True)
    return 0


def _start_etcd(processes: Processes) -> str:
    """Start etcd on free ports, and return its endpoint."""
    print("etcd …", flush=True)
    client, peer, health = (f"127.0.0.1:{free_port()}" for _ in range(3))
    options = {
        "name": "etcd",
        "data-dir": str(DIRECTORY / "etcd"),
        "listen-client-urls": f"http://{client}",
        "advertise-client-urls": f"http://{client}",
        "listen-peer-urls": f"http://{peer}",
        "initial-advertise-peer-urls": f"http://{peer}",
        "initial-cluster": f"etcd=http://{peer}",
        "listen-metrics-urls": f"http://{health}",
        "auto-compaction-retention": "1h",
    }
    flags = [f"--{name}={value}" for name, value in options.items()]
    processes.start("etcd", [etcd.binary(), *flags], f"http://{health}/health")
    return client


def _start_broker(processes: Processes, node_id: int, port: int, endpoint: str) -> None:
    print(f"broker {node_id} …", flush=True)
    metrics_port = free_port()
    properties = {
        "node.id": str(node_id),
        "broker.rack": RACKS[node_id],
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": str(DIRECTORY / str(node_id)),
        "metadata.etcd.endpoints": endpoint,
        "metrics.port": str(metrics_port),
    }
    overrides = [part for name, text in properties.items() for part in ("--override", f"{name}={text}")]
    command = [sys.executable, "-m", "odradek", "broker", "--config", _PROPERTIES, *overrides]
    processes.start(f"broker-{node_id}", command, f"http://127.0.0.1:{metrics_port}/readyz")


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):  # noqa: S310 - the scheme is http
            return True
    except (urllib.error.URLError, OSError):
        return False


def _print_guide(processes: Processes, ports: dict[int, int], endpoint: str) -> None:
    bootstrap = ",".join(f"127.0.0.1:{port}" for port in ports.values())
    pids = "\n".join(f"  broker {node_id}  kill -9 {processes.pid(f'broker-{node_id}')}" for node_id in ports)
    print(
        f"""
A cluster of three brokers serves {bootstrap}; etcd is at {endpoint}.

  odradek topics create --bootstrap-server {bootstrap} --topic orders --replication-factor 3
  odradek topics describe --bootstrap-server {bootstrap} --topic orders

Kill one, and look again: another leads after broker.session.timeout.ms. Output is in {DIRECTORY}/.

{pids}
  etcd      kill -9 {processes.pid("etcd")}

Ctrl-C stops all.
""",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
