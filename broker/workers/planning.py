"""The plan of a move: from the directories and the metadata to what changes in both. It changes nothing itself.

A new worker gets directories and a `known/` record as if it had run and stopped cleanly at the present revision of the
store. So it is `intact` when it registers (`broker/metadata/registration.py`), and its entries in in-sync sets count.

What is left in the directories of a removed worker goes to worker 0: partitions that the store does not have there as
`-stray` (or `-delete`, if their topic is deleted), under which names no broker opens them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from odradek.broker.config import BrokerConfig
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.values import KnownBroker
from odradek.broker.randomness import Randomness
from odradek.broker.storage.checkpoints.offset_checkpoints import OffsetCheckpoint, Partition
from odradek.broker.storage.checkpoints.partition_metadata import read_topic_id
from odradek.broker.storage.checkpoints.text_file import MalformedFileError
from odradek.broker.storage.names import deleted_directory, stray_directory
from odradek.broker.workers.checks import check_clean, check_directories, located
from odradek.broker.workers.layout import Fleet, MovedPartition, moves
from odradek.broker.workers.machine import CHECKPOINTS, Machine
from odradek.broker.workers.owned_store import worker_of
from odradek.broker.workers.plan import Checkpoint, Epochs, MovedReplicas, NewDirectory, Place, Plan, Rename
from odradek.broker.workers.stored import Stored
from odradek.protocol.uuids import uuid_to_text


def make_plan(
    config: BrokerConfig, machine: Machine, stored: Stored, fleet: Fleet, cluster_id: str, randomness: Randomness
) -> Plan:
    """Return the plan that brings every partition to its worker. The machine is locked, and no worker registered.

    Raises `SpreadRefusedError`, `MalformedFileError`, `OSError`.
    """
    count = config.num_workers
    keys = Keys(config.metadata_etcd_namespace)
    check_directories(machine, stored, fleet, cluster_id, keys, count=count)
    places = located(machine, stored.image, fleet)
    moved = moves(stored.image, fleet, count)
    removed = [each for each in fleet.workers if each >= count and (machine.of(each) or _known(stored, fleet, each))]
    sources = {old for each in moved for old in each.workers}
    targets = {new for each in moved for new in each.workers.values()}
    check_clean(machine, stored, fleet, sources, sources | targets)
    renames = list(_renames(machine, moved, places))
    identities = _Identities(config, machine, stored, fleet, randomness)
    for worker in sorted(targets):
        identities.prepare(worker)
    return Plan(
        cluster_id=cluster_id,
        node_id=config.node_id,
        directory_ids=[identities.directory_id(place) for place in machine.places(0)],
        new_directories=identities.new_directories,
        checkpoints=list(_checkpoints(machine, moved, places)),
        renames=renames + list(_leftovers(machine, stored, moved, removed, randomness)),
        moved=[MovedReplicas(uuid_to_text(each.topic.topic_id), each.partition, dict(each.workers)) for each in moved],
        epochs={worker: identities.epochs(worker) for worker in sorted(sources | targets)},
        known=identities.known,
        removed=removed,
    )


def _known(stored: Stored, fleet: Fleet, worker: int) -> KnownBroker | None:
    return stored.known(fleet.node_id(worker))


def _renames(
    machine: Machine, moved: Iterable[MovedPartition], places: Mapping[Partition, Mapping[int, Place]]
) -> Iterable[Rename]:
    for topic, index, workers in moved:
        for old, new in workers.items():
            source = places[topic.name, index].get(old)
            if source is not None:
                name = machine.directories[source].partitions[topic.name, index]
                yield Rename(source, name, Place(source.log_dir, new), name)


def _leftovers(
    machine: Machine,
    stored: Stored,
    moved: Iterable[MovedPartition],
    removed: Sequence[int],
    randomness: Randomness,
) -> Iterable[Rename]:
    moving = {(each.topic.name, each.partition, worker) for each in moved for worker in each.workers}
    for place, directory in machine.directories.items():
        if place.worker not in removed:
            continue
        target = Place(place.log_dir, 0)
        for name in directory.retired:
            yield Rename(place, name, target, name)
        for key, name in sorted(directory.partitions.items()):
            if (*key, place.worker) not in moving:
                is_deleted = _topic_id(machine, place, name) in stored.image.deleted
                new_name = (deleted_directory if is_deleted else stray_directory)(*key, randomness.uuid())
                yield Rename(place, name, target, new_name)


def _topic_id(machine: Machine, place: Place, name: str) -> bytes | None:
    try:
        return read_topic_id(machine.files, f"{machine.path(place)}/{name}")
    except (FileNotFoundError, MalformedFileError):
        return None


def _checkpoints(
    machine: Machine, moved: Iterable[MovedPartition], places: Mapping[Partition, Mapping[int, Place]]
) -> Iterable[Checkpoint]:
    """Yield the new content of the files that change. Raises `MalformedFileError` for a damaged one."""
    steps: list[tuple[Partition, Place, Place]] = []
    for topic, index, workers in moved:
        for old, new in workers.items():
            source = places[topic.name, index].get(old)
            if source is not None:
                steps.append(((topic.name, index), source, Place(source.log_dir, new)))
    touched = dict.fromkeys(place for _, source, target in steps for place in (source, target))
    for name in CHECKPOINTS:
        before = {place: OffsetCheckpoint(machine.files, machine.path(place), name).read_sound() for place in touched}
        after = {place: dict(offsets) for place, offsets in before.items()}
        for key, _, target in steps:  # an offset of a log of that name that was there before
            after[target].pop(key, None)
        for key, source, target in steps:
            offset = after[source].pop(key, None)
            if offset is not None:
                after[target][key] = offset
        for place, offsets in after.items():
            if offsets != before[place]:
                rows = [(topic, partition, offset) for (topic, partition), offset in sorted(offsets.items())]
                yield Checkpoint(place, name, rows)


class _Identities:
    """The directories, epochs and `known/` records of the workers that receive partitions."""

    def __init__(
        self, config: BrokerConfig, machine: Machine, stored: Stored, fleet: Fleet, randomness: Randomness
    ) -> None:
        self.new_directories: list[NewDirectory] = []
        self.known: dict[int, KnownBroker] = {}
        self._rack, self._host = config.broker_rack, worker_of(config).host
        self._machine = machine
        self._stored = stored
        self._fleet = fleet
        self._randomness = randomness

    def epochs(self, worker: int) -> Epochs:
        """Return the epochs of a worker that has stopped cleanly; those of a new one are the present revision."""
        known = _known(self._stored, self._fleet, worker)
        if known is None:
            return Epochs(self._stored.image.revision, self._stored.image.revision)
        return Epochs(known.last_epoch, known.intact_since or known.last_epoch)

    def prepare(self, worker: int) -> None:
        """Add the directories that a worker lacks, and its record unless the store has the same."""
        epoch = self.epochs(worker).last
        for place in self._machine.places(worker):
            directory = self._machine.directories.get(place)
            if directory is None or directory.meta is None:
                new_id = uuid_to_text(self._randomness.uuid())
                self.new_directories.append(NewDirectory(place, new_id, epoch))
            elif not directory.is_clean:  # it has no partitions
                self.new_directories.append(NewDirectory(place, None, epoch))
        ids = [self.directory_id(place) for place in self._machine.places(worker)]
        known = _known(self._stored, self._fleet, worker)
        if known is None:
            self.known[worker] = self._new(epoch, ids)
        elif not {known.log_dir, *known.log_dirs} >= set(ids):
            self.known[worker] = msgspec.structs.replace(known, log_dirs=ids)

    def directory_id(self, place: Place) -> str:
        """Return the id of a directory, "" if it is not formatted and stays so."""
        directory = self._machine.directories.get(place)
        if directory is not None and directory.meta is not None:
            return directory.meta.directory_id
        return next((each.directory_id or "" for each in self.new_directories if each.place == place), "")

    def _new(self, epoch: int, ids: list[str]) -> KnownBroker:
        return KnownBroker(
            last_epoch=epoch,
            log_dir=ids[0],
            boot_id="",
            clean_shutdown_epoch=epoch,
            intact_since=epoch,
            rack=self._rack,
            log_dirs=ids,
            host=self._host,
        )
