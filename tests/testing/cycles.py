"""Start and end embedded brokers again and again, and compare what is left of them.

```
python -m tests.testing.cycles --cycles 10000
```

Each cycle is one of `KINDS`. One of each comes first, because some things are created once in a process. Then nothing
may be left: no thread, descriptor, task or temporary directory. A process of its own runs them: the broker of another
test may start threads meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

from odradek.broker.broker import Broker
from odradek.broker.testing.threaded import ThreadedBroker
from odradek.client import Consumer, Producer
from tests.peers.certificates import Authority

_DESCRIPTORS = Path("/proc/self/fd")
_REPORTS = 10


class Left(NamedTuple):
    """What exists in this process, and in the directory of temporary files."""

    threads: int
    descriptors: int
    directories: int

    @classmethod
    def now(cls, directory: Path) -> Left:
        gc.collect()
        return cls(
            threading.active_count(), len(list(_DESCRIPTORS.iterdir())), sum(1 for _ in directory.glob("odradek-*"))
        )


async def _use(bootstrap: str) -> None:
    async with Producer(bootstrap) as producer:
        await producer.send("t", b"a")


async def _use_tls(bootstrap: str) -> None:
    async with Producer(bootstrap, security_protocol="SSL", ssl_truststore_certificates=_authority().pem) as producer:
        await producer.send("t", b"a")


@cache
def _authority() -> Authority:
    return Authority()


async def _join_a_group(bootstrap: str) -> None:
    await _use(bootstrap)
    async with Consumer(bootstrap, group_id="g", auto_offset_reset="earliest") as consumer:
        await consumer.subscribe("t")
        await consumer.poll()


def on_a_thread() -> None:
    with ThreadedBroker() as broker:
        broker.run(_use(broker.bootstrap))


def with_a_group() -> None:
    with ThreadedBroker() as broker:
        broker.run(_join_a_group(broker.bootstrap))


def with_tls() -> None:
    issued = _authority().server()
    properties = {
        "listeners": "SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": issued.key_pem(),
        "ssl.keystore.certificate.chain": issued.chain_pem,
    }
    with ThreadedBroker(properties) as broker:
        broker.run(_use_tls(broker.bootstrap))


def started_again() -> None:
    with ThreadedBroker() as broker:
        broker.run(_use(broker.bootstrap))
        broker.restart()
        broker.kill()
        broker.start()
        broker.run(_use(broker.bootstrap))


def only_stopped() -> None:
    broker = ThreadedBroker()
    broker.start()
    broker.run(_use(broker.bootstrap))
    broker.stop()


def never_started() -> None:
    ThreadedBroker()


def port_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        try:
            ThreadedBroker({"listeners": f"PLAINTEXT://127.0.0.1:{other.getsockname()[1]}"}).start()
        except OSError:
            return
    raise AssertionError("the port was free")


def on_a_loop() -> None:
    async def main() -> None:
        async with Broker({"metrics.port": 0}) as broker:
            await _use(broker.bootstrap)
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        assert not tasks, tasks

    asyncio.run(main())


KINDS: Sequence[Callable[[], None]] = (
    on_a_thread, with_a_group, with_tls, started_again, only_stopped, never_started, port_in_use, on_a_loop
)  # fmt: skip


def run_cycles(count: int, directory: Path, report: Callable[[int], None] = lambda _: None) -> tuple[Left, Left]:
    """Run so many cycles, and return what existed after the first of each kind, and what exists at the end.

    Brokers make their directories in `directory`: the caller has set TMPDIR. `report` is called ten times.
    """
    for kind in KINDS:
        kind()
    before = Left.now(directory)
    for number, kind in enumerate(islice(cycle(KINDS), count), 1):
        kind()
        if not number % max(count // _REPORTS, 1):
            report(number)
    return before, Left.now(directory)


def _resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.testing.cycles", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cycles", type=int, default=10_000, metavar="N")
    count = parser.parse_args().cycles
    began = time.monotonic()

    def report(number: int) -> None:
        seconds = time.monotonic() - began
        print(f"{number} cycles in {seconds:.0f} s, {_resident_mb():.0f} MB resident", flush=True)

    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/dev/shm")) as directory:
        os.environ["TMPDIR"] = tempfile.tempdir = directory
        before, after = run_cycles(count, Path(directory), report)
        tempfile.tempdir = None
    print(f"before {before}\nafter  {after}")
    return int(after != before)


if __name__ == "__main__":
    sys.exit(main())
