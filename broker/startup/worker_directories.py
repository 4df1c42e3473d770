"""The refusal to start while partitions are not in the directories of the workers that `num.workers` names.

| in a log directory | a broker that starts there |
|---|---|
| `odradek-workers-plan` | would lack the logs that `odradek workers --spread` has moved, or will: refused |
| partitions in `worker.k`, and k >= num.workers | would not serve them: refused |

A worker's directory lies in the configured one, which has the plan. A read-only broker passes: it changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from odradek.broker.config import BrokerConfig
from odradek.broker.storage.disk.files import Files, OsFiles, parent_of
from odradek.broker.storage.log_dir import LogDirRefusedError
from odradek.broker.storage.names import WORKERS_PLAN, parse_partition_directory, parse_worker_directory
from odradek.protocol.plural import pluralize


def refuse_unfinished(config: BrokerConfig) -> str | None:
    """Return why no broker may start on the log directories of a configuration, or of a worker; None if it may."""
    files = OsFiles()
    return next((reason for each in config.log_dirs if (reason := _unfinished(each, files)) is not None), None)


def check_finished(config: BrokerConfig) -> None:
    """Raise `LogDirRefusedError` if `refuse_unfinished` has a reason.

    For a broker that holds its locks: a move that had them, and was killed after the check before, has left its plan.
    """
    reason = refuse_unfinished(config)
    if reason is not None:
        raise LogDirRefusedError(reason)


def partitions_left_behind(config: BrokerConfig) -> list[str]:
    """Return a sentence for each directory of a worker beyond `num.workers` that holds partitions.

    Omits directories that cannot be read: opening them decides.
    """
    files = OsFiles()
    return [reason for each in config.log_dirs for reason in _left_behind(each, config.num_workers, files)]


def check_workers(path: str, workers: int, files: Files) -> None:
    """Raise `LogDirRefusedError` if a broker must not start on the log directory at `path`; `workers`: num.workers."""
    reason = _unfinished(path, files) or next(_left_behind(path, workers, files), None)
    if reason is not None:
        raise LogDirRefusedError(reason)


def _unfinished(path: str, files: Files) -> str | None:
    name = path.rstrip("/").rpartition("/")[2]
    places = [path] if parse_worker_directory(name) is None else [path, parent_of(path)]
    for place in places:
        if files.exists(f"{place}/{WORKERS_PLAN}"):
            return (
                f"{place}/{WORKERS_PLAN} exists, because the move of partitions to their workers was interrupted: run"
                " `odradek workers --spread` again with the configuration of all workers, which finishes it"
            )
    return None


def _left_behind(path: str, workers: int, files: Files) -> Iterator[str]:
    try:
        found = worker_directories(path, files)
    except OSError:
        return
    for number, directory in found:
        if number >= workers and (count := _partitions(directory, files)):
            yield (
                f"{directory} holds {pluralize(count, 'partition')}, but num.workers = {workers}, so that no process"
                " would serve them: run `odradek workers --spread` with this configuration, which empties it"
            )


def worker_directories(path: str, files: Files) -> list[tuple[int, str]]:
    """Return the workers beside worker 0 that have a directory in `path`, and the directories, by number.

    Raises `OSError`.
    """
    names = [entry.name for entry in files.scan(path) if entry.is_directory]
    numbers = [(parse_worker_directory(name), f"{path}/{name}") for name in names]
    return sorted((number, directory) for number, directory in numbers if number is not None)


def _partitions(path: str, files: Files) -> int:
    try:
        entries = files.scan(path)
    except OSError:
        return 0
    return sum(entry.is_directory and parse_partition_directory(entry.name) is not None for entry in entries)
