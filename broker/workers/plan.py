"""`odradek-workers-plan`: what `odradek workers --spread` does, written before it does it.

```
plan written ─► directories ─► checkpoints ─► renames ─► known/, assignments, states ─► removals ─► plan removed
              └──────────────────────── a start of any worker is refused ────────────────────────┘
```

The file is in the first of log.dirs. Each step is the same when it is done a second time, whatever of it was done
before, so that after an interruption the whole plan is executed again. Offsets and epochs are those of the moment when
the plan was made: nothing else can change them while brokers are refused.

A directory is named by its place in log.dirs and by its worker. `directory_ids` identifies those of worker 0, so that
an unfinished plan is not executed after log.dirs has changed.
"""

from __future__ import annotations

import msgspec

from odradek.broker.metadata.values import KnownBroker
from odradek.broker.storage.checkpoints.text_file import MalformedFileError
from odradek.broker.storage.disk.files import Files, parent_of, replace_file
from odradek.broker.storage.names import WORKERS_PLAN

_VERSION = 1


class Place(msgspec.Struct, frozen=True, array_like=True):
    """A log directory: that of a worker in one of log.dirs."""

    log_dir: int
    worker: int


class NewDirectory(msgspec.Struct, frozen=True):
    """A directory that is created where it is missing, and formatted as after a clean stop.

    `directory_id`: None: it is formatted already, and only the marker of a clean stop is missing. `broker_epoch`: for
    that marker.
    """

    place: Place
    directory_id: str | None
    broker_epoch: int


class Checkpoint(msgspec.Struct, frozen=True):
    """The whole new content of an offset checkpoint: topic, partition, offset."""

    place: Place
    name: str
    rows: list[tuple[str, int, int]]


class Rename(msgspec.Struct, frozen=True, array_like=True):
    """The move of a directory to another worker, within one of log.dirs."""

    source: Place
    name: str
    target: Place
    new_name: str


class MovedReplicas(msgspec.Struct, frozen=True, array_like=True):
    """A partition in the store whose replicas move; `workers`: the new one by the present one."""

    topic_id: str
    partition: int
    workers: dict[int, int]


class Epochs(msgspec.Struct, frozen=True, array_like=True):
    """Broker epochs of a stopped worker: of its last registration, and the first since which it has lost nothing."""

    last: int
    intact_since: int


class Plan(msgspec.Struct, frozen=True):
    """See the module. `known`: the records of workers that receive partitions; `removed`: workers that end."""

    cluster_id: str
    node_id: int
    directory_ids: list[str]
    new_directories: list[NewDirectory]
    checkpoints: list[Checkpoint]
    renames: list[Rename]
    moved: list[MovedReplicas]
    epochs: dict[int, Epochs]
    known: dict[int, KnownBroker]
    removed: list[int]
    version: int = _VERSION

    @property
    def changes_nothing(self) -> bool:
        return not (self.renames or self.moved or self.removed)


def write_plan(files: Files, directory: str, plan: Plan) -> None:
    """Write the plan, durably and at once. Raises `OSError`."""
    replace_file(files, f"{directory}/{WORKERS_PLAN}", msgspec.json.encode(plan))


def read_plan(files: Files, directory: str) -> Plan | None:
    """Return the plan that is not finished, None without one. Raises `MalformedFileError`, `OSError`."""
    path = f"{directory}/{WORKERS_PLAN}"
    try:
        plan = msgspec.json.decode(files.read(path), type=Plan)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise MalformedFileError(f"{path} cannot be read: {error}") from None
    if plan.version != _VERSION:
        raise MalformedFileError(f"{path} is of version {plan.version}, not {_VERSION}")
    return plan


def remove_plan(files: Files, directory: str) -> None:
    """Remove the plan, durably. Raises `OSError`."""
    path = f"{directory}/{WORKERS_PLAN}"
    files.remove(path)
    files.fsync_directory(parent_of(path))
