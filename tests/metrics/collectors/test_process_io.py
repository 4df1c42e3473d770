from __future__ import annotations

from pathlib import Path

from odradek.broker.metrics.collectors.process_io import ProcessIoCollector
from tests.metrics.collectors.scraping import Scraped, of


def test_disk_bytes_are_read_from_the_file_of_linux_if_it_exists(tmp_path: Path) -> None:
    file = tmp_path / "io"
    assert list(ProcessIoCollector(file).collect()) == []
    file.write_text("rchar: 9\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 5\n")
    families = ProcessIoCollector(file).collect()
    assert {sample.name: sample.value for family in families for sample in family.samples} == {
        "kafka_server_kafkaserver_linux_disk_read_bytes": 4096,
        "kafka_server_kafkaserver_linux_disk_write_bytes": 8192,
    }


async def test_a_scrape_includes_the_process(scraped: Scraped) -> None:
    samples = await scraped.samples()
    assert samples[of("process_resident_memory_bytes")] > 1_000_000
    assert samples[of("process_open_fds")] > 0
    assert of("python_gc_collections_total", generation="2") in samples
