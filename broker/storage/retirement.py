"""Taking logs out of their log directory: each is closed, and its directory renamed.

The new name says that the log was deleted, or is a stray (`names`). One sync of the log directory makes the new names
of all logs of a call durable; if a power cut restores an old name before it, the broker renames the directory again.
`LogDir` is the only user.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
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
    files: Files,
    failure: DiskFailure,
) -> list[RetiredLog | KafkaError]:
    """Remove partitions from `logs`, close their logs, rename the directories. Return each log, or its error.

    The errors: UNKNOWN_TOPIC_OR_PARTITION if there is no such log, KAFKA_STORAGE_ERROR if its directory cannot be
    renamed. If the disk has not failed (a mount point, say), the log stays, closed, and can be retired again. Raises
    KAFKA_STORAGE_ERROR if the sync shows that the disk has failed.
    """
    retired: list[RetiredLog | KafkaError] = []
    for partition in partitions:
        try:
            retired.append(_retire(logs, partition, new_path, files, failure))
        except KafkaError as error:
            retired.append(error)
    if any(isinstance(each, RetiredLog) for each in retired):
        try:
            files.fsync_directory(failure.path)
        except OSError as error:
            refusal = failure.fail(f"renaming in {failure.path}", error)
            if not is_transient(error):
                raise refusal from error
    return retired


def _retire(
    logs: dict[Partition, Log],
    partition: Partition,
    new_path: Callable[[Partition], str],
    files: Files,
    failure: DiskFailure,
) -> RetiredLog:
    failure.check()
    log = logs.pop(partition, None)
    if log is None:
        topic, index = partition
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no log of {topic}-{index}")
    source = str(log.directory)  # the real name, which may end in -00 for partition 0
    target = new_path(partition)
    try:
        log.release()
        files.rename(source, target)
    except OSError as error:
        if is_transient(error) or is_name_error(error):
            logs[partition] = log
        if is_name_error(error):
            _LOG.error("%s cannot be deleted: %s", source, error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{source} cannot be renamed: {error}") from error
        raise failure.fail(f"renaming {log}", error) from error
    return RetiredLog(log, target)
