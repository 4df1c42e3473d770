"""The bytes that this process read from and wrote to disks, from /proc/self/io, as in Kafka's LinuxIoMetricsCollector.

Unlike bytes fetched and produced, they do not include what the page cache served. If the file cannot be read (another
system than Linux, or no permission) there are no series.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_FILE = Path("/proc/self/io")
_FAMILIES = {
    "read_bytes": ("kafka_server_kafkaserver_linux_disk_read_bytes", "Bytes that this process read from disks."),
    "write_bytes": ("kafka_server_kafkaserver_linux_disk_write_bytes", "Bytes that this process wrote to disks."),
}


class ProcessIoCollector(Collector):
    """The two families, read from `file` at each scrape. Its lines are `name: number`."""

    def __init__(self, file: Path = _FILE) -> None:
        self._file = file

    def collect(self) -> Iterator[Metric]:
        try:
            lines = self._file.read_text().splitlines()
        except OSError:
            return
        for line in lines:
            name, _, number = line.partition(": ")
            if name in _FAMILIES:
                yield GaugeMetricFamily(*_FAMILIES[name], int(number))
