"""The copy of one partition's log in a snapshot, and the ways back to it.

| since the snapshot the log | then a restore |
|---|---|
| is the same | only forgets the idempotent producers |
| was only appended to, also with new segments | truncates it in place |
| was appended to, and another snapshot has a link to the file that must be cut | puts the files back |
| lost its beginning (retention, DeleteRecords), was compacted or truncated, is of another topic or gone | the same |

Closed segments are links, because nobody writes to them; only the active segment is a copy. Copying a large one would
take long at each restore, so a snapshot first begins a new segment if it has more than `ROLLED_BYTES`.

A directory that was put back has links to the snapshot's closed segments and a copy of its active one, so that its
next restore can truncate again.
"""

from __future__ import annotations

from typing import Final

from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dirs import LogDirs
from odradek.broker.storage.log_state import LogState
from odradek.broker.storage.names import LEADER_EPOCHS, PARTITION_METADATA, partition_directory
from odradek.broker.storage.opening.log_opening import Checkpointed
from odradek.broker.testing.snapshots import file_copies

ROLLED_BYTES: Final = 1 << 20
"""Copying so many bytes takes about as long as beginning a segment: a third of a millisecond."""


class PartitionCopy:
    """The log of a partition at one moment, with its files in a directory of the snapshot.

    `log_dir_index` is the number of its log directory. `log` is the log that the files were last equal to the beginning
    of, None if that has been truncated below.
    """

    def __init__(self, log: Log, state: LogState, log_dir_index: int, directory: str) -> None:
        self.topic = log.topic
        self.partition = log.partition
        self.topic_id = log.topic_id
        self.log_dir_index = log_dir_index
        self.directory = directory
        self.state = state
        self.log: Log | None = log
        self._finals: list[str] = []  # names of the files that may be linked
        self._others: list[tuple[str, int]] = []  # names and bytes of the files that must be copied

    @property
    def key(self) -> tuple[str, int]:
        return self.topic, self.partition

    def keep_files(self, log: Log) -> None:
        """Link and copy the files of `log`, which is in this state now."""
        file_copies.make_directory(self.directory)
        for path, size, is_final, tail in self.state.files:
            name = path.rpartition("/")[2]
            if is_final:
                self._link(path, name)
            else:
                file_copies.copy_up_to(path, f"{self.directory}/{name}", size, tail)
                self._others.append((name, size + len(tail)))
        self._link(f"{log.directory}/{PARTITION_METADATA}", PARTITION_METADATA)
        if log.leader_epochs:
            self._link(f"{log.directory}/{LEADER_EPOCHS}", LEADER_EPOCHS)
        snapshot = self.state.snapshot_name
        if snapshot is not None:
            file_copies.write(f"{self.directory}/{snapshot}", self.state.producers)
            self._finals.append(snapshot)

    def _link(self, path: str, name: str) -> None:
        file_copies.link_or_copy(path, f"{self.directory}/{name}")
        self._finals.append(name)

    # ---------------------------------------------------------------------------------------------------- the ways back

    def can_truncate(self, log: Log | None) -> bool:
        """Whether truncating `log`, the partition's present one, in place makes it what it was."""
        if log is None or log is not self.log or not self.state.is_beginning_of(log):
            return False
        last = self.state.segments[-1]
        return last.size == self.state.active_size or not file_copies.is_linked(last.log.path)

    def truncate(self, log: Log) -> bool:
        """Truncate the log in place; return whether it was longer. Idempotent producers are forgotten either way."""
        log.cleaned_offset = self.state.cleaned_offset
        if log.log_end_offset == self.state.log_end_offset and not len(log.producers):
            return False  # as most of the 50 partitions with committed offsets
        return log.truncate_to(self.state.log_end_offset, self.state)

    def put_back(self, log_dirs: LogDirs, config: LogConfig) -> Log:
        """Delete the partition's present log, if there is one, and return the one that the files make."""
        if self.key in log_dirs.logs:
            log_dirs.delete_log(*self.key)
        log_dir = log_dirs.directories[self.log_dir_index]
        self.copy_to(f"{log_dir.path}/{partition_directory(*self.key)}")
        log = self.log = log_dirs.open_log(log_dir, *self.key, config, self.checkpointed)
        self.state = self.state._replace(segments=tuple(log.segments))
        return log

    def copy_to(self, target: str) -> None:
        """Make the partition's directory, which does not exist."""
        file_copies.make_directory(target)
        for name in self._finals:
            file_copies.link_or_copy(f"{self.directory}/{name}", f"{target}/{name}")
        for name, size in self._others:
            file_copies.copy_up_to(f"{self.directory}/{name}", f"{target}/{name}", size)

    @property
    def checkpointed(self) -> Checkpointed:
        """The offsets for the checkpoints of the log directory."""
        state = self.state
        return Checkpointed(state.log_end_offset, state.log_start_offset, state.cleaned_offset)


def copy_partition(log: Log, log_dir_index: int, directory: str) -> PartitionCopy:
    """Copy a log. Nothing is appended to it meanwhile, and compaction and retention pause."""
    log.check_end()
    if log.active_segment.size > ROLLED_BYTES:
        log.roll()
    with log.cleaning.paused():
        kept = PartitionCopy(log, log.state(), log_dir_index, f"{directory}/{partition_directory(*_key(log))}")
        kept.keep_files(log)
    return kept


def _key(log: Log) -> tuple[str, int]:
    return log.topic, log.partition
