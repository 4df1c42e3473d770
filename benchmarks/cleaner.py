"""The speed of compaction and of Apache Kafka's on the same log: MiB of log in each second of a core's time.

A log of records with random keys is written once, and compacted by both: by our process, and by the cleaner thread of
Apache Kafka on a copy of the directory (needs Java, as `tests/interop` does). Both read every byte twice. The time is
processor time, so that other work on the machine does not count; the threads of Java's compilers do not count either.

    python -m benchmarks.cleaner [--mib 200] [--value 100] [--keys 200000] [--codec NONE] [--no-kafka]
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import time
from pathlib import Path

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from odradek.broker.clock import SystemClock
from odradek.broker.randomness import SystemRandomness
from odradek.broker.storage.compaction.cleaner import Cleaner, CleanerSettings
from odradek.broker.storage.compaction.cleaner_process import CleanerProcess
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.records.batch_builder import BatchBuilder
from tests.peers import apache
from tests.peers.server import Server

TOPIC = "compacted"
SEGMENT_BYTES = 100 << 20
BATCH_BYTES = 16 << 10
TICKS = 100  # clock ticks a second in /proc
CONFIG = LogConfig(
    cleanup_policy=frozenset({"compact"}), segment_bytes=SEGMENT_BYTES, min_cleanable_dirty_ratio=0.01,
    file_delete_delay_ms=0,
)  # fmt: skip


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--mib", type=int, default=200)
    arguments.add_argument("--value", type=int, default=100, help="bytes of a value")
    arguments.add_argument("--keys", type=int, default=200_000)
    arguments.add_argument("--codec", default="NONE", choices=[codec.name for codec in Codec])
    arguments.add_argument("--no-kafka", action="store_true")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "log"
        records = make(source, given.mib, given.value, given.keys, Codec[given.codec])
        print(f"{given.mib} MiB, {records} records of {given.value} bytes, {given.keys} keys, {given.codec.lower()}")
        report("Odradek", given.mib, ours(source))
        if not given.no_kafka:
            report("Apache Kafka", given.mib, theirs(source, Path(directory) / "kafka"))


def report(name: str, mib: int, seconds: float) -> None:
    print(f"{name:13}{seconds:7.2f} s of a core, {mib / seconds:7.1f} MiB/s")


def opened(path: Path) -> LogDir:
    log_dir = LogDir(path, clock=SystemClock(), randomness=SystemRandomness())
    log_dir.open(lambda _: CONFIG, node_id=1)
    return log_dir


def make(path: Path, mib: int, value_bytes: int, keys: int, codec: Codec) -> int:
    """Fill a log, and return the number of its records."""
    chance = random.Random(1)
    # Half of it is random, about as compressible as real records.
    values = b"".join(chance.randbytes(8) + bytes(8) for _ in range(1 << 16))
    log_dir = opened(path)
    log = log_dir.create_log(TOPIC, 0, bytes(16), CONFIG)
    now_ms = time.time_ns() // 1_000_000
    while log.size_bytes < mib << 20:
        batch = BatchBuilder(codec)
        while not batch.records_count or batch.size_estimate < BATCH_BYTES:
            at = chance.randrange(len(values) - value_bytes)
            batch.append(now_ms, b"key-%010d" % chance.randrange(keys), values[at : at + value_bytes])
        log.append_as_leader(memoryview(batch.build()), 0, now_ms)
    log.roll()
    records = log.log_end_offset
    log_dir.close()
    return records


def ours(source: Path) -> float:
    copy = source.with_name("copy")
    shutil.copytree(source, copy)
    log_dir = opened(copy)
    log = log_dir.logs[TOPIC, 0]
    log.advance_high_watermark(log.log_end_offset)
    worker = CleanerProcess()
    cleaner = Cleaner([log_dir], SystemClock())
    assert cleaner.run_once(worker.clean, CleanerSettings())
    seconds = cpu_seconds(Path(f"/proc/{worker.pid}/stat"))
    worker.close()
    log_dir.close()
    return seconds


def theirs(source: Path, directory: Path) -> float:
    server = apache.prepare(directory, {"log.cleaner.backoff.ms": "100"})
    try:
        server.start()
        create_topic(server)
        server.stop()
        target = server.log_dir / f"{TOPIC}-0"
        for path in (source / f"{TOPIC}-0").iterdir():
            if path.name != "partition.metadata":
                shutil.copy(path, target)
        server.start()
        thread = cleaner_thread(server)
        before = cpu_seconds(thread)
        set_policy(server, "compact")
        while TOPIC not in read(server.log_dir / "cleaner-offset-checkpoint"):
            time.sleep(0.05)
        return cpu_seconds(thread) - before
    finally:
        server.kill()


def create_topic(server: Server) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(TOPIC, 1, 1, config={"segment.bytes": str(SEGMENT_BYTES)})])[TOPIC].result(30)


def set_policy(server: Server, policy: str) -> None:
    entry = ConfigEntry("cleanup.policy", policy, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, TOPIC, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 0})
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(30)


def cleaner_thread(server: Server) -> Path:
    tasks = Path(f"/proc/{server.process.pid}/task")
    [found] = [task / "stat" for task in tasks.iterdir() if read(task / "comm").startswith("kafka-log-clean")]
    return found


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def cpu_seconds(stat: Path) -> float:
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


if __name__ == "__main__":
    main()
