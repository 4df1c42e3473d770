"""Taking logs out of their log directory: each is closed, loses its rows in the checkpoints, and gets another name.

```
out of `logs` ─► closed ─► rows dropped from every checkpoint, synced ─► renamed ─► log directory synced
```
No checkpoint has a row for a log that is not in `logs`, so none can write one again. A kill before the rename leaves a
log without rows, which the broker retires again when it starts; after it, nothing is left that a new topic of the name
could inherit. The other order would leave rows without a log (`offset_checkpoints`).

The new name says that the log was deleted, or is a stray (`names`). One sync of the log directory makes the new names
of all logs of a call durable; if a power cut restores an old name before it, the broker renames the directory again.
`LogDir` is the only user.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from odradek.broker.storage.checkpoints.offset_checkpoints import Partition
from odradek.broker.storage.disk.disk_errors import is_name_error, is_transient
from odradek.broker.storage.disk.disk_failure import DiskFailure
from odradek.broker.storage.disk.files import Files
from odradek.broker.storage.log import Log
from odradek.protocol.errors import ErrorCode, KafkaError

_LOG = logging.getLogger(__name__)


class RetiredLog(NamedTuple):
    """A log that was closed, and the new path of its directory."""

    log: Log
    path: str


def retire_logs(
    logs: dict[Partition, Log],
    partitions: Iterable[Partition],
    new_path: Callable[[Partition], str],
    drop_rows: Callable[[Collection[Partition]], None],
    files: Files,
    failure: DiskFailure,
) -> list[RetiredLog | KafkaError]:
    """Remove partitions from `logs`, close their logs, rename the directories. Return each log, or its error.

    `drop_rows` removes the rows of partitions from the checkpoints; if a transient error prevents it, the next
    checkpoint or creation of a log does it. The errors: UNKNOWN_TOPIC_OR_PARTITION if there is no such log,
    KAFKA_STORAGE_ERROR if its directory cannot be renamed. If the disk has not failed (a mount point, say), the log
    stays, closed, and can be retired again. Raises KAFKA_STORAGE_ERROR if a sync shows that the disk has failed.
    """
    taken = [_take(logs, partition, failure) for partition in partitions]
    found = {(log.topic, log.partition) for log in taken if isinstance(log, Log)}
    if found:
        _drop_rows(found, drop_rows, failure)
    retired = [log if isinstance(log, KafkaError) else _rename(logs, log, new_path, files, failure) for log in taken]
    if any(isinstance(each, RetiredLog) for each in retired):
        try:
            files.fsync_directory(failure.path)
        except OSError as error:
            refusal = failure.fail(f"renaming in {failure.path}", error)
            if not is_transient(error):
                raise refusal from error
    return retired


def _take(logs: dict[Partition, Log], partition: Partition, failure: DiskFailure) -> Log | KafkaError:
    """Remove a log from `logs`, and close it."""
    if failure.error is not None:
        return failure.refusal()
    log = logs.pop(partition, None)
    if log is None:
        topic, index = partition
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no log of {topic}-{index}")
    try:
        log.release()
    except OSError as error:
        if is_transient(error):
            logs[partition] = log
        return failure.fail(f"closing {log}", error)
    return log


def _drop_rows(
    partitions: Collection[Partition], drop_rows: Callable[[Collection[Partition]], None], failure: DiskFailure
) -> None:
    try:
        drop_rows(partitions)
    except OSError as error:
        refusal = failure.fail("removing rows from a checkpoint", error)
        if not is_transient(error):
            raise refusal from error


def _rename(
    logs: dict[Partition, Log], log: Log, new_path: Callable[[Partition], str], files: Files, failure: DiskFailure
) -> RetiredLog | KafkaError:
    if failure.error is not None:
        return failure.refusal()
    partition = log.topic, log.partition
    source = str(log.directory)  # the real name, which may end in -00 for partition 0
    target = new_path(partition)
    try:
        files.rename(source, target)
    except OSError as error:
        if is_transient(error) or is_name_error(error):
            logs[partition] = log
        if is_name_error(error):
            _LOG.error("%s cannot be deleted: %s", source, error)
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{source} cannot be renamed: {error}")
        return failure.fail(f"renaming {log}", error)
    return RetiredLog(log, target)
