"""`.log`: a line for every batch, and with `--deep-iteration` one for every record.

If the file ends without a whole batch, the last line is `Found 12 invalid bytes at the end of
00000000000000000000.log`, unless `--max-bytes` limits the dump. Source: Kafka `DumpLogSegments.dumpLog`.
"""

from __future__ import annotations

from collections.abc import Iterator

from odradek.broker.inspection.dump import message, record_batch
from odradek.broker.inspection.dump.complaints import Complaints, OffsetWatch
from odradek.broker.inspection.dump.java import INT32_MAX, absolute_path, parse_long
from odradek.broker.inspection.dump.log_file import LogFile
from odradek.broker.inspection.dump.options import DumpOptions


def dump_log(path: str, options: DumpOptions, complaints: Complaints) -> Iterator[str]:
    name = path.rpartition("/")[2]
    yield f"Log starting offset: {parse_long(name.partition('.')[0])}\n"
    watch = OffsetWatch(absolute_path(path), complaints)
    with LogFile(path) as log:
        end = log.slice_end(0, options.max_bytes)
        position = 0
        for batch in log.batches(0, end):
            lines = record_batch if batch.magic >= 2 else message
            yield from lines.batch_line(log, batch)
            if options.is_deep:
                yield from lines.record_lines(log, batch, options, watch)
            position += batch.size
        if position < end and options.max_bytes == INT32_MAX:
            yield f"Found {end - position} invalid bytes at the end of {name}\n"
