"""The output of `perf`: a line for each interval, as Kafka's tools print it, and the result as a line or as JSON.

```
250000 records sent, 50000.0 records/sec (4.77 MB/sec), 3.1 ms avg latency, 20.2 ms max latency.
1000000 records sent, 49980.0 records/sec (4.77 MB/sec), 2.80 ms avg latency, 21.00 ms max latency, 2.61 ms 50th, …
```
A MB is 1048576 bytes here, as in Kafka's tools.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from odradek.client.cli.output.tables import print_json
from odradek.client.cli.perf.latencies import Latencies
from odradek.protocol.plural import pluralize

_MB = 1 << 20


class Measured:
    """Records, bytes and latencies since the object was made."""

    def __init__(self) -> None:
        self.records = 0
        self.bytes = 0
        self.latencies = Latencies()
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """The time since the object was made; never 0."""
        return max(time.monotonic() - self._began, 1e-6)


class Report:
    """Counts records, and prints a line for each interval; `verb` is "sent" or "read"."""

    def __init__(self, verb: str, *, interval_ms: int, as_json: bool) -> None:
        self._verb = verb
        self._interval = interval_ms / 1000
        self._as_json = as_json
        self._whole = Measured()
        self._part = Measured()

    def add_latency(self, duration_ms: float) -> None:
        self._whole.latencies.add(duration_ms)
        self._part.latencies.add(duration_ms)

    def add(self, records: int, size: int) -> None:
        """Count records whose sizes add up to `size` bytes; print a line if the interval is over."""
        for measured in (self._whole, self._part):
            measured.records += records
            measured.bytes += size
        if self._part.seconds >= self._interval:
            self._print_part()

    def end_warmup(self, records: int) -> None:
        """Discard what was measured so far; `records` is the number of records not counted yet."""
        if not self._as_json:
            print(f"{pluralize(self._whole.records + records, 'record')} {self._verb} to warm up.", flush=True)
        self._whole, self._part = Measured(), Measured()

    @contextmanager
    def finished(self) -> Iterator[None]:
        """Print the result when the block ends, also by Ctrl-C; not when it fails."""
        from asyncio import CancelledError

        try:
            yield
        except CancelledError:
            self._print_whole()
            raise
        self._print_whole()

    def _print_whole(self) -> None:
        whole = self._whole
        seconds = whole.seconds
        if self._as_json:
            print_json(
                {
                    "records": whole.records,
                    "bytes": whole.bytes,
                    "seconds": round(seconds, 3),
                    "records_per_second": round(whole.records / seconds, 1),
                    "bytes_per_second": round(whole.bytes / seconds),
                    "latency_ms": whole.latencies.summary() if whole.latencies.count else None,
                }
            )
            return
        print(self._line(whole, digits=2) + self._percentiles() + ".")

    def _print_part(self) -> None:
        if not self._as_json:
            print(f"{self._line(self._part, digits=1)}.", flush=True)
        self._part = Measured()

    def _line(self, measured: Measured, digits: int) -> str:
        seconds, latencies = measured.seconds, measured.latencies
        line = (
            f"{pluralize(measured.records, 'record')} {self._verb}, {measured.records / seconds:.1f} records/sec"
            f" ({measured.bytes / seconds / _MB:.2f} MB/sec)"
        )
        if not latencies.count:
            return line
        return f"{line}, {latencies.mean:.{digits}f} ms avg latency, {latencies.max:.{digits}f} ms max latency"

    def _percentiles(self) -> str:
        latencies = self._whole.latencies
        if not latencies.count:
            return ""
        named = {"50th": 0.5, "95th": 0.95, "99th": 0.99, "99.9th": 0.999}
        return "".join(f", {latencies.percentile(share):.2f} ms {name}" for name, share in named.items())
