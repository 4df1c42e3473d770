"""The reasons for which no partition may be moved: each is one sentence, in a `SpreadRefusedError`.

| what is checked | because otherwise |
|---|---|
| every directory is of this node and cluster, the store is no older copy | partitions of another cluster would move |
| all directories that a worker had are there | logs in the others would be lost |
| no worker is registered; the last stop was clean | logs would need recovery, which reads the checkpoints |
| every replica has its directory, once | the move would hide that a log is lost |
| directories of workers are on the file system of their log.dirs | a rename would not do |
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from odradek.broker.metadata.cluster_record import DirectoriesState, why_refused
from odradek.broker.metadata.image import MetadataImage, PartitionImage, TopicImage
from odradek.broker.metadata.keys import Keys
from odradek.broker.storage.checkpoints.metadata_revision import SeenMetadata
from odradek.broker.storage.checkpoints.offset_checkpoints import Partition
from odradek.broker.workers.layout import Fleet, SpreadRefusedError
from odradek.broker.workers.machine import Directory, Machine
from odradek.broker.workers.plan import Place
from odradek.broker.workers.stored import Stored


def check_cluster(stored: Stored, cluster_id: str | None) -> str:
    """Return the id of the cluster in the store; `cluster_id`: the configured one. Raises `SpreadRefusedError`."""
    if stored.cluster is None:
        raise SpreadRefusedError("the metadata store has no cluster: no broker has run with this configuration")
    if cluster_id is not None and stored.cluster.id != cluster_id:
        raise SpreadRefusedError(f"the metadata store is of cluster {stored.cluster.id}, cluster.id is {cluster_id}")
    return stored.cluster.id


def check_stopped(stored: Stored, fleet: Fleet) -> None:
    """Refuse if a worker is registered. Raises `SpreadRefusedError`."""
    for worker in fleet.workers:
        if fleet.node_id(worker) in stored.image.registered:
            raise SpreadRefusedError(
                f"worker {worker} (node id {fleet.node_id(worker)}) is registered in the metadata store: stop it first;"
                " the registration of a killed process ends after broker.session.timeout.ms"
            )


def check_directories(
    machine: Machine, stored: Stored, fleet: Fleet, cluster_id: str, keys: Keys, *, count: int
) -> None:
    """Check whose the directories are, and that none is missing; `count`: num.workers.

    Raises `SpreadRefusedError`, `OSError`.
    """
    for place, directory in machine.directories.items():
        _check_identity(machine.path(place), directory, fleet.node_id(place.worker), cluster_id)
        if place.worker and not machine.is_on_one_file_system(place):
            raise SpreadRefusedError(
                f"{machine.path(place)} is on another file system than {machine.log_dirs[place.log_dir]}, so that"
                " partitions cannot be moved there by a rename"
            )
    for worker in fleet.workers:
        directories = machine.of(worker)
        node_id = fleet.node_id(worker)
        seen = max((each.seen for each in directories), default=SeenMetadata())
        state = DirectoriesState(cluster_id, seen.revision, seen.broker_epoch)
        refusal = why_refused(stored.state_of(node_id), state, keys)
        if refusal is not None:
            raise SpreadRefusedError(refusal)
        known = stored.known(node_id)
        missing = {known.log_dir, *known.log_dirs} if known is not None else set()
        missing -= {each.meta.directory_id for each in directories if each.meta is not None}
        if missing and (directories or worker < count):
            raise SpreadRefusedError(
                f"log directory {min(missing)} of worker {worker} (node id {node_id}), which it had when it ran last,"
                " is in none of log.dirs"
            )


def _check_identity(path: str, directory: Directory, node_id: int, cluster_id: str) -> None:
    if directory.meta is None:
        if directory.partitions:
            raise SpreadRefusedError(f"log directory {path} has partitions, but no meta.properties")
    elif directory.meta.node_id != node_id:
        raise SpreadRefusedError(
            f"log directory {path} is of node {directory.meta.node_id}, and this configuration has node {node_id} there"
        )
    elif directory.meta.cluster_id != cluster_id:
        raise SpreadRefusedError(
            f"log directory {path} is of cluster {directory.meta.cluster_id}, the metadata store is of {cluster_id}"
        )


def check_clean(
    machine: Machine, stored: Stored, fleet: Fleet, sources: Iterable[int], involved: Iterable[int]
) -> None:
    """Check that workers were stopped cleanly. Raises `SpreadRefusedError`.

    `sources`: workers that give partitions away; `involved`: these, and those that receive some.
    """
    for place, directory in machine.directories.items():
        if directory.partitions and not directory.is_clean:
            raise SpreadRefusedError(
                f"the broker with log directory {machine.path(place)} was not stopped cleanly: start and stop it first"
            )
    for worker in sorted(involved):
        known = stored.known(fleet.node_id(worker))
        is_clean = known.clean_shutdown_epoch == known.last_epoch if known is not None else worker not in sources
        if not is_clean:
            raise SpreadRefusedError(
                f"worker {worker} (node id {fleet.node_id(worker)}) was not stopped cleanly: start and stop it first"
            )


def located(machine: Machine, image: MetadataImage, fleet: Fleet) -> Mapping[Partition, Mapping[int, Place]]:
    """Return where the directories of the store's partitions are, by worker.

    A replica that never was in sync may have none yet. Raises `SpreadRefusedError` for another one without, and for a
    partition that is in a directory in which the store does not have it, too.
    """
    found: defaultdict[Partition, list[Place]] = defaultdict(list)
    for place, directory in machine.directories.items():
        for key in directory.partitions:
            found[key].append(place)
    places: dict[Partition, Mapping[int, Place]] = {}
    for topic in image.topics.values():
        for index, partition in enumerate(topic.partitions):
            key = topic.name, index
            workers = fleet.replicas(partition)
            if workers:
                places[key] = _of_replicas(machine, topic, index, workers, found.get(key, ()))
                _check_complete(places[key], topic, index, partition, fleet)
    return places


def _of_replicas(
    machine: Machine, topic: TopicImage, index: int, workers: list[int], found: Iterable[Place]
) -> Mapping[int, Place]:
    places: dict[int, Place] = {}
    for place in found:
        other = places.get(place.worker)
        if other is None and place.worker not in workers:
            other = next((each for each in found if each.worker in workers), None)
        if other is not None:
            raise SpreadRefusedError(
                f"{topic.name}-{index} is in two log directories, {machine.path(other)} and {machine.path(place)}"
            )
        places[place.worker] = place
    return places


def _check_complete(
    places: Mapping[int, Place], topic: TopicImage, index: int, partition: PartitionImage, fleet: Fleet
) -> None:
    for worker in fleet.replicas(partition):
        node_id = fleet.node_id(worker)
        has_log = node_id in {*partition.isr, *partition.eligible_leader_replicas, partition.leader}
        if has_log and worker not in places:
            raise SpreadRefusedError(
                f"{topic.name}-{index} is in none of the log directories of worker {worker}, to which the metadata"
                " store has it assigned"
            )
