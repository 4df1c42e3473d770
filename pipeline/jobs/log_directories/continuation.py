"""The next offsets of an export: the checkpoint of its last run, compared with the log directory.

| in the log directory | means | `--on-data-loss=continue` exports |
|---|---|---|
| another cluster id | another log directory | all records |
| another topic id | the topic was deleted and created again | the new topic from its start |
| a later leader epoch that begins below the last run's end | the log was truncated, and written again | from there |
| a log that ends below the last run's end | the log was truncated | from its end |
| a log that starts above the last run's end | retention or DeleteRecords removed other records | from there |
| a new partition that does not start at 0, after the first run | the same | from there |
| a partition of the last run is missing | its other records are lost | the others |

An id that a directory lacks (before Kafka 2.8, or in a copy of a partition) is not compared.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple, Self

from odradek.broker.storage.checkpoints.leader_epochs import EpochStart
from odradek.pipeline.jobs.log_directories.log_offsets import LogState
from odradek.pipeline.options.bounds import Numbers, flat_offsets, nested_offsets


class Checkpoint(NamedTuple):
    """What a run has exported: up to `ends` (exclusive), of which `starts` has the partitions that were there.

    `epochs`: the leader epoch of the last offset, where it is known.
    """

    starts: Numbers
    ends: Numbers
    epochs: Numbers
    topic_ids: dict[str, str]
    cluster_id: str | None

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of `to_json`."""
        found: dict[str, Any] = json.loads(text)
        starts, ends, epochs = (flat_offsets(found[name]) for name in ("start", "end", "epochs"))
        return cls(starts, ends, epochs, found["topic_ids"], found["cluster_id"])

    def to_json(self) -> str:
        numbers = {"start": self.starts, "end": self.ends, "epochs": self.epochs}
        nested = {name: nested_offsets(each) for name, each in numbers.items()}
        return json.dumps({**nested, "topic_ids": self.topic_ids, "cluster_id": self.cluster_id})


NOTHING = Checkpoint({}, {}, {}, {}, None)


def next_checkpoint(last: Checkpoint | None, log: LogState) -> tuple[Checkpoint, list[str]]:
    """Return the range of the next run, and sentences about what does not fit the last one."""
    last, is_first = last or NOTHING, last is None
    losses, known = _known(last, log)
    starts: Numbers = {}
    for key, log_start in log.starts.items():
        exported = known.get(key)
        if exported is None and log_start > 0 and not is_first:
            losses.append(f"the new partition {key} starts at offset {log_start}, not at 0")
        elif exported is not None and exported > log.stored_ends[key]:
            losses.append(f"{key} was exported up to offset {exported}, and now ends at {log.stored_ends[key]}")
            exported = log.stored_ends[key]
        elif exported is not None and exported < log_start:
            losses.append(f"{key} was exported up to offset {exported}, and now starts at {log_start}")
        starts[key] = log_start if exported is None else max(log_start, exported)
    missing = [str(key) for key in sorted(last.starts.keys() - log.starts.keys())]
    if missing:
        losses.append(f"the log directory no longer has {', '.join(missing)}")
    ends = {key: max(log.ends[key], start) for key, start in starts.items()}
    epochs = {key: epoch for key, end in ends.items() if (epoch := _epoch_before(end, log.epochs[key])) is not None}
    reached = Checkpoint(
        starts=starts,
        ends={**known, **ends},  # a missing partition may come back
        epochs={key: epoch for key, epoch in last.epochs.items() if key in known and key not in ends} | epochs,
        topic_ids={**last.topic_ids, **log.topic_ids},
        cluster_id=log.cluster_id or last.cluster_id,
    )
    return reached, losses


def _known(last: Checkpoint, log: LogState) -> tuple[list[str], Numbers]:
    """Return sentences about other and truncated logs, and the last ends without the former, below the latter."""
    if last.cluster_id and log.cluster_id and last.cluster_id != log.cluster_id:
        return [f"the last run read a log directory of cluster {last.cluster_id}, this is one of {log.cluster_id}"], {}
    losses, known = [], dict(last.ends)
    for topic, before in sorted(last.topic_ids.items()):
        now = log.topic_ids.get(topic, before)
        if now != before:
            losses.append(f"{topic} was deleted and created again: its id was {before}, and is now {now}")
            known = {key: end for key, end in known.items() if key.topic != topic}
    for key in sorted(known.keys() & last.epochs.keys() & log.epochs.keys()):
        later = [each.start_offset for each in log.epochs[key] if each.epoch > last.epochs[key]]
        if later and later[0] < known[key]:
            losses.append(
                f"{key} was exported up to offset {known[key]}, and was truncated to offset {later[0]} since then"
            )
            known[key] = later[0]
    return losses, known


def _epoch_before(end: int, epochs: list[EpochStart]) -> int | None:
    """Return the leader epoch of the offset before `end`."""
    return next((each.epoch for each in reversed(epochs) if each.start_offset < end), None)
