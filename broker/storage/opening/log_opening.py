"""From a partition's directory to its log: list the files, repair what is damaged, build the `Log`.

After a clean stop nothing of the log is read: names and sizes come from the directory, the end from the recovery point
(where a clean stop puts it), topic id, leader epochs and producers from their small files. After an unclean stop see
`recovery`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from odradek.broker.storage.batch_scan import CorruptBatchError
from odradek.broker.storage.checkpoints.leader_epochs import LeaderEpochs
from odradek.broker.storage.checkpoints.partition_metadata import read_topic_id, sync_topic_id, write_topic_id
from odradek.broker.storage.checkpoints.text_file import MalformedFileError
from odradek.broker.storage.index.index_file import CorruptIndexError
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.names import (
    LEADER_EPOCHS,
    LOG_SUFFIX,
    PARTITION_METADATA,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    file_name,
    is_log,
    parse_file_name,
)
from odradek.broker.storage.opening.leftovers import has_leftovers, settle_leftovers
from odradek.broker.storage.opening.recovery import RecoverySummary, SegmentProgress, recover_segment
from odradek.broker.storage.producers.partition_producers import PartitionProducers, rebuild_producer_state
from odradek.broker.storage.producers.producer_snapshots import ProducerSnapshots
from odradek.broker.storage.producers.producer_state import ProducerState
from odradek.broker.storage.resources import LogResources
from odradek.broker.storage.segment import MAX_RELATIVE_OFFSET, Segment, create_segment
from odradek.broker.storage.segmented_log import SegmentedLog
from odradek.broker.storage.segments import Segments
from odradek.protocol.schema import ZERO_UUID

_LOG = logging.getLogger(__name__)

ZERO_TOPIC_ID = ZERO_UUID

# Topic, partition, base offset of the segment at hand, bytes done and bytes in all of this log.
Progress = Callable[[str, int, int, int, int], None]


class Checkpointed(NamedTuple):
    """The offsets of a log in the directory's checkpoints; None where there is none."""

    recovery_point: int | None
    log_start_offset: int | None
    cleaned_offset: int | None = None


def create_log(
    directory: str, topic: str, partition: int, topic_id: bytes, config: LogConfig, resources: LogResources
) -> Log:
    """Create the directory of a new partition, and its log, empty, from offset 0.

    Nothing is synced: the first flush syncs all of it, before anything counts as synced. Only where every record is
    synced the directory's name and the topic id are, too: a power loss of all replicas before the first record must
    leave a log, because a broker in the in-sync set that has none cannot lead (`replication.lost_logs`).
    """
    files = resources.files
    files.make_directory(directory)
    write_topic_id(files, directory, topic_id)
    is_synced = config.flush_messages == 1
    if is_synced:
        sync_topic_id(files, directory)
    segments = Segments([create_segment(directory, 0, config, resources)])
    segmented = SegmentedLog(directory, config, resources, segments, end_offset=0, recovery_point=0)
    segmented.changed = True
    return Log(
        topic,
        partition,
        topic_id,
        segmented=segmented,
        leader_epochs=LeaderEpochs(files, f"{directory}/{LEADER_EPOCHS}"),
        producers=PartitionProducers(ProducerState(), ProducerSnapshots(directory, resources.descriptors)),
        log_start_offset=0,
        resources=resources,
        identity_is_synced=is_synced,
    )


class NoLogError(Exception):
    """A directory with the name of a partition holds neither a topic id nor a segment."""


class LogOpener:
    """Opens the log in one partition's directory, once. `recovery` counts what was recovered."""

    def __init__(
        self,
        directory: str,
        topic: str,
        partition: int,
        config: LogConfig,
        resources: LogResources,
        checkpointed: Checkpointed,
        *,
        is_clean: bool,
        keeps_gaps: bool = False,  # missing offsets between segments are no loss: it may be a log of Apache Kafka
        progress: Progress | None = None,
    ) -> None:
        self._directory = directory
        self._topic = topic
        self._partition = partition
        self._config = config
        self._resources = resources
        self._checkpointed = checkpointed
        self._was_clean = self._is_clean = is_clean
        self._keeps_gaps = keeps_gaps
        self._progress = progress
        self._segments = Segments()
        self._snapshots = ProducerSnapshots(directory, resources.descriptors)
        self._leader_epochs = LeaderEpochs(resources.files, f"{directory}/{LEADER_EPOCHS}")
        self._recovered_producers: ProducerState | None = None
        self._changed = False
        self.recovery = RecoverySummary()

    def open(self) -> Log:
        """Open the log. A log without segments gets an empty one; its `had_segments` is false.

        Raises `NoLogError`, having changed nothing, if there is neither a segment nor a topic id, and `OSError` if the
        disk fails; the caller must not retry after that.
        """
        topic_id = self._find_files()
        log_start_offset = self._checkpointed.log_start_offset or 0
        had_segments = bool(self._segments.base_offsets)
        if not had_segments:
            self._add_segment(log_start_offset)
        log_start_offset = max(log_start_offset, self._segments.first.base_offset)
        self._check_transaction_indexes()
        end_offset, tail_is_checked = self._find_end(log_start_offset)
        if end_offset < log_start_offset and not self._is_clean:
            end_offset = self._ignore_start(log_start_offset, end_offset)
            log_start_offset = self._segments.first.base_offset
        elif end_offset < log_start_offset:
            _LOG.warning(
                "%s ends at %d and starts at %d: dropping it all", self._directory, end_offset, log_start_offset
            )
            self._drop(list(self._segments))
            self._add_segment(log_start_offset)
            self._leader_epochs.clear()
            end_offset = log_start_offset
        self._leader_epochs.truncate_from_end(end_offset)
        self._leader_epochs.truncate_from_start(log_start_offset)
        producers = self._load_producers(log_start_offset, end_offset)
        recovery_point = end_offset if self._is_clean else min(self._checkpointed.recovery_point or 0, end_offset)
        segmented = SegmentedLog(
            self._directory, self._config, self._resources, self._segments, end_offset, recovery_point
        )
        segmented.changed = self._changed
        log = Log(
            self._topic,
            self._partition,
            topic_id,
            segmented=segmented,
            leader_epochs=self._leader_epochs,
            producers=PartitionProducers(producers, self._snapshots),
            log_start_offset=log_start_offset,
            resources=self._resources,
            tail_is_checked=tail_is_checked,
            # The first flush after a creation syncs it; without an id there is nothing to sync.
            identity_is_synced=self._was_clean or bool(self._checkpointed.recovery_point) or topic_id == ZERO_TOPIC_ID,
        )
        cleaned_offset = self._checkpointed.cleaned_offset
        log.cleaned_offset = None if cleaned_offset is None else min(cleaned_offset, end_offset)
        log.had_segments = had_segments
        return log

    # ------------------------------------------------------------------------------------------------------------ files

    def _find_files(self) -> bytes:
        """Find segments, snapshots and epochs in the directory; return the topic id, zeros without one."""
        sizes, modified_ms = self._scan()
        if not is_log(sizes):
            raise NoLogError(self._directory)
        if has_leftovers(sizes):
            settle_leftovers(self._resources.descriptors, self._directory, sizes)
            sizes, modified_ms = self._scan()
        by_base: dict[int, dict[str, int]] = {}
        snapshots = []
        for name, size in sizes.items():
            parsed = parse_file_name(name)
            if parsed is not None:
                offset, suffix = parsed
                if suffix in SEGMENT_SUFFIXES:
                    by_base.setdefault(offset, {})[suffix] = size
                elif suffix == SNAPSHOT_SUFFIX:
                    snapshots.append(offset)
        self._snapshots = ProducerSnapshots(self._directory, self._resources.descriptors, snapshots)
        segments = []
        for base_offset, segment_sizes in by_base.items():
            if LOG_SUFFIX in segment_sizes:
                created_ms = modified_ms[file_name(base_offset, LOG_SUFFIX)]
                segments.append(self._segment(base_offset, segment_sizes, created_ms))
            else:
                self._remove_orphans(base_offset, segment_sizes)
        self._segments = Segments(segments)
        self._load_epochs(LEADER_EPOCHS in sizes)
        return self._read_topic_id() if PARTITION_METADATA in sizes else ZERO_TOPIC_ID

    def _scan(self) -> tuple[dict[str, int], dict[str, int]]:
        entries = [entry for entry in self._resources.files.scan(self._directory) if not entry.is_directory]
        return {entry.name: entry.size for entry in entries}, {entry.name: entry.modified_ms for entry in entries}

    def _segment(self, base_offset: int, sizes: dict[str, int], created_ms: int) -> Segment:
        jitter_bound = min(self._config.segment_jitter_ms, self._config.segment_ms)
        jitter_ms = int(self._resources.randomness.random() * jitter_bound) if jitter_bound else 0
        return Segment(
            self._directory,
            base_offset,
            self._resources.descriptors,
            self._config,
            sizes=sizes,
            created_ms=created_ms,
            jitter_ms=jitter_ms,
        )

    def _remove_orphans(self, base_offset: int, suffixes: dict[str, int]) -> None:
        for suffix in suffixes:
            path = f"{self._directory}/{file_name(base_offset, suffix)}"
            _LOG.warning("removing %s, an index without a log", path)
            self._resources.files.remove(path)

    def _read_topic_id(self) -> bytes:
        try:
            return read_topic_id(self._resources.files, self._directory)
        except MalformedFileError as error:
            _LOG.warning("the topic id of %s is lost: %s", self._directory, error)
            return ZERO_TOPIC_ID

    def _load_epochs(self, has_file: bool) -> None:
        try:
            if has_file:
                self._leader_epochs.load()
                return
        except MalformedFileError as error:
            _LOG.warning("rebuilding the leader epochs of %s: %s", self._directory, error)
            self._leader_epochs.clear()
        try:
            for segment in self._segments:
                for batch, _ in segment.log.headers():
                    if batch.leader_epoch > self._leader_epochs.latest:
                        self._leader_epochs.assign(batch.leader_epoch, batch.base_offset)
        except CorruptBatchError as error:
            _LOG.warning("leader epochs are known up to where the log is sound: %s", error)

    def _add_segment(self, base_offset: int) -> None:
        self._changed = True
        segment = create_segment(self._directory, base_offset, self._config, self._resources)
        self._segments.replace(added=[segment])

    def _drop(self, segments: list[Segment]) -> None:
        self._changed = True
        self._segments.replace(segments)
        paths = [path for segment in segments for path in segment.mark_deleted()]
        snapshots = [self._snapshots.mark_deleted(segment.base_offset) for segment in segments]
        paths += [path for path in snapshots if path is not None]
        self._resources.deletions.add(self._config.file_delete_delay_ms, files=paths)

    # -------------------------------------------------------------------------------------------------------------- end

    def _check_transaction_indexes(self) -> None:
        """Extend recovery to a damaged transaction index, which only the batches before it can rebuild."""
        for segment in self._segments:
            try:
                segment.transaction_index.check()
            except CorruptIndexError as error:
                _LOG.warning("recovering from offset %d on: %s", segment.base_offset, error)
                self._is_clean = False
                self._checkpointed = self._checkpointed._replace(
                    recovery_point=min(self._checkpointed.recovery_point or 0, segment.base_offset)
                )
                return

    def _find_end(self, log_start_offset: int) -> tuple[int, bool]:
        """The end of the log, and whether the bytes up to there were read."""
        if not self._is_clean:
            return self._recover(log_start_offset), True
        active, end_offset = self._segments.active, self._checkpointed.recovery_point
        if end_offset is not None:
            # Otherwise the checkpoint is not of these segments: they were exchanged from outside.
            fits = end_offset > active.base_offset if active.size else end_offset == active.base_offset
            if fits:
                return end_offset, False
        return active.next_offset(), True

    def _recover(self, log_start_offset: int) -> int:
        recovery_point = self._checkpointed.recovery_point or 0
        unflushed = self._segments.from_offset(recovery_point)
        self._changed = True
        self.recovery.logs = 1
        done, total = 0, sum(segment.size for segment in unflushed)
        producers = self._recovered_producers = ProducerState()
        end_offset = self._segments.first.base_offset
        for index, segment in enumerate(unflushed):
            if index and segment.base_offset < end_offset:
                _LOG.warning("dropping the segments from %s on, which begin before offset %d", segment, end_offset)
                self._drop(unflushed[index:])
                break
            if index and segment.base_offset > end_offset and self._is_hole(unflushed[index - 1], segment):
                _LOG.warning("dropping the segments from %s on: batches from offset %d are lost", segment, end_offset)
                self._drop(unflushed[index:])
                break
            _LOG.debug("recovering %s, %d of %d bytes of its log done", segment, done, total)
            if index:
                # Keep the state: the snapshot that was just written has only the last batch of each producer.
                producers.end_offset = segment.base_offset
                self._snapshots.write(producers)
            else:
                self._rebuild_producers(producers, log_start_offset, segment.base_offset)
            size = segment.size
            cut = recover_segment(segment, producers, self._leader_epochs, self._reporter(segment, done, total))
            self._snapshots.write(producers)
            end_offset = producers.end_offset
            done += size
            self.recovery.add(RecoverySummary(segments=1, bytes=size, bytes_cut=cut))
            if cut:
                self._drop(unflushed[index + 1 :])
                break
        return end_offset

    def _ignore_start(self, log_start_offset: int, end_offset: int) -> int:
        """Recover once more, with the producers of all records; return the end of the log.

        A kill came between a truncation and its row. (Apache Kafka deletes all segments, and begins at that offset.)
        """
        _LOG.warning("%s ends at %d: ignoring its start %d", self._directory, end_offset, log_start_offset)
        self._snapshots.remove_outside(end_offset, end_offset)  # all of them: they may lack producers before that start
        self.recovery = RecoverySummary()
        return self._recover(self._segments.first.base_offset)

    def _is_hole(self, before: Segment, segment: Segment) -> bool:
        """Return whether the offsets that are missing between two segments were there before a power cut.

        It may keep the bytes of a later file and lose those of an earlier one that was not synced yet. Compaction takes
        offsets out, too, but below the recovery point; a replica of its log has gaps, but between segments only one
        that is too long for a segment. (Apache Kafka, whose logs have gaps anywhere, keeps what is behind the hole.)
        """
        is_long = before.size > 0 and segment.base_offset - before.base_offset > MAX_RELATIVE_OFFSET
        return not is_long and not self._keeps_gaps

    def _reporter(self, segment: Segment, done: int, total: int) -> SegmentProgress:
        progress = self._progress

        def report(read: int) -> None:
            if progress is not None:
                progress(self._topic, self._partition, segment.base_offset, done + read, total)

        return report

    # -------------------------------------------------------------------------------------------------------- producers

    def _load_producers(self, log_start_offset: int, end_offset: int) -> ProducerState:
        self._snapshots.remove_strays(self._segments.base_offsets)
        recovered = self._recovered_producers
        if recovered is not None and recovered.end_offset == end_offset:
            recovered.remove_expired(self._resources.clock.time_ms(), self._config.producer_id_expiration_ms)
            recovered.replicated_up_to(end_offset)
            self._snapshots.remove_outside(log_start_offset, end_offset)
            return recovered
        producers = ProducerState()
        if self._is_clean and not self._snapshots.offsets:
            # A clean stop leaves a snapshot. Without one there were no producers, and Kafka writes empty snapshots.
            for offset in (*self._segments.base_offsets[-2:], end_offset):
                producers.end_offset = offset
                self._snapshots.write(producers)
            self._record_ids(producers)
            return producers
        self._rebuild_producers(producers, log_start_offset, end_offset)
        return producers

    def _record_ids(self, producers: ProducerState) -> None:
        """Record the producer ids in the last two segments: a recovery or truncation may replay them."""
        try:
            for segment in list(self._segments)[-2:]:
                for _, header in segment.log.headers():
                    producers.record_id(header.producer_id)
        except CorruptBatchError as error:
            _LOG.warning("producer ids are known up to where the log is sound: %s", error)

    def _rebuild_producers(self, producers: ProducerState, log_start_offset: int, end_offset: int) -> None:
        rebuild_producer_state(
            producers,
            self._snapshots,
            self._segments,
            log_start_offset,
            end_offset,
            now_ms=self._resources.clock.time_ms(),
            expiration_ms=self._config.producer_id_expiration_ms,
            may_read_log=not self._is_clean,
        )
