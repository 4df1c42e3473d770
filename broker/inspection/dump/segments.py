"""The files of one command line, one after another; the suffix of a file is its type.

Source: Kafka `DumpLogSegments.main`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from odradek.broker.inspection.dump.complaints import Complaint, Complaints, DumpError
from odradek.broker.inspection.dump.java import file_path
from odradek.broker.inspection.dump.log import dump_log
from odradek.broker.inspection.dump.offset_index import dump_offset_index
from odradek.broker.inspection.dump.options import DumpOptions
from odradek.broker.inspection.dump.producer_snapshot import dump_producer_snapshot
from odradek.broker.inspection.dump.time_index import dump_time_index
from odradek.broker.inspection.dump.transaction_index import dump_transaction_index


def dump_segments(paths: Iterable[str], options: DumpOptions) -> Iterator[str]:
    """Yield the output; pieces of class `Complaint` go to standard error.

    The first file that cannot be dumped further ends the dump with DumpError, RemoteProtocolError or OSError.
    Complaints about the files before it are not printed then, as in Kafka.
    """
    complaints = Complaints()
    for path in map(file_path, paths):
        yield f"Dumping {path}\n"
        yield from _dump_file(path, options, complaints)
    yield from complaints.lines()


def _dump_file(path: str, options: DumpOptions, complaints: Complaints) -> Iterator[str]:
    _, dot, suffix = path.rpartition("/")[2].rpartition(".")
    match dot + suffix:
        case ".log":
            return dump_log(path, options, complaints)
        case ".index":
            return dump_offset_index(path, options, complaints)
        case ".timeindex":
            return dump_time_index(path, options, complaints)
        case ".txnindex":
            return dump_transaction_index(path)
        case ".snapshot":
            return dump_producer_snapshot(path)
        case ".checkpoint":
            raise DumpError(f"{path}: snapshots of a Raft quorum are not supported")
    # Differs from Kafka: a missing file is an error whatever its name, because mostly the name is misspelt.
    Path(path).stat()
    return iter((Complaint(f"Ignoring unknown file {path}\n"),))
