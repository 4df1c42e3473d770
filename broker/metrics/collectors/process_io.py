"""What this process has read from and written to disks, as Kafka's LinuxIoMetricsCollector tells it: /proc/self/io.

Unlike bytes fetched and produced these are what the disks saw: what the page cache answered is not among them. Where
there is no such file (not Linux, or not allowed) there are no series.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_FILE = Path("/proc/self/io")
_FAMILIES = {
    "read_bytes": ("kafka_server_kafkaserver_linux_disk_read_bytes", "Bytes that this process had disks read."),
    "write_bytes": ("kafka_server_kafkaserver_linux_disk_write_bytes", "Bytes that this process had disks write."),
}


class ProcessIoCollector(Collector):
    """The two families, read at each scrape from `file`, whose lines are `name: number`."""

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
