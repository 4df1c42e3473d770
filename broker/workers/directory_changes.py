"""The part of a plan that changes directories. Each function may be repeated, and what it has done is on the disk."""

from __future__ import annotations

from collections import defaultdict

from odradek.broker.config.workers import node_id
from odradek.broker.storage.checkpoints.clean_shutdown import write_clean_shutdown
from odradek.broker.storage.checkpoints.meta_properties import MetaProperties, write_meta_properties
from odradek.broker.storage.checkpoints.offset_checkpoints import OffsetCheckpoint
from odradek.broker.storage.disk.files import make_directories, parent_of
from odradek.broker.workers.layout import SpreadRefusedError
from odradek.broker.workers.machine import Machine
from odradek.broker.workers.plan import Checkpoint, Place, Plan, Rename


def move_directories(plan: Plan, machine: Machine) -> None:
    """Create what is missing, write the checkpoints, rename. Raises `LogDirRefusedError`, `OSError`.

    Raises `SpreadRefusedError` for a directory that is neither in its old place nor in its new one.
    """
    _create(plan, machine)
    for checkpoint in plan.checkpoints:
        _write_checkpoint(checkpoint, machine)
    by_source: defaultdict[Place, list[Rename]] = defaultdict(list)
    for rename in plan.renames:
        by_source[rename.source].append(rename)
    targets = dict.fromkeys(rename.target for rename in plan.renames)
    for source, renames in by_source.items():
        _rename(machine, source, renames)
    # The new names first: a power cut between the two must not leave a directory without any.
    for place in (*targets, *by_source):
        if machine.files.exists(machine.path(place)):
            machine.files.fsync_directory(machine.path(place))


def _create(plan: Plan, machine: Machine) -> None:
    files = machine.files
    for place, directory_id, broker_epoch in (
        (each.place, each.directory_id, each.broker_epoch) for each in plan.new_directories
    ):
        path = machine.path(place)
        make_directories(files, path)
        machine.lock(path)
        if directory_id is not None:
            meta = MetaProperties(node_id(plan.node_id, place.worker), plan.cluster_id, directory_id)
            write_meta_properties(files, path, meta)
        write_clean_shutdown(files, path, broker_epoch)


def _write_checkpoint(checkpoint: Checkpoint, machine: Machine) -> None:
    path = machine.path(checkpoint.place)
    if machine.files.exists(path):  # else it was removed in the end
        offsets = {(topic, partition): offset for topic, partition, offset in checkpoint.rows}
        OffsetCheckpoint(machine.files, path, checkpoint.name).write(lambda: offsets)


def _rename(machine: Machine, source: Place, renames: list[Rename]) -> None:
    files, directory = machine.files, machine.path(source)
    present = {entry.name for entry in files.scan(directory)} if files.exists(directory) else set()
    for _, name, target, new_name in ((each.source, each.name, each.target, each.new_name) for each in renames):
        new_path = f"{machine.path(target)}/{new_name}"
        if name in present:
            files.rename(f"{directory}/{name}", new_path)
        elif not files.exists(new_path):
            raise SpreadRefusedError(f"{directory}/{name} has vanished, and was not moved to {new_path}")


def remove_directories(plan: Plan, machine: Machine) -> list[str]:
    """Remove the directories of removed workers; return a sentence for each that stays, because it has other files.

    Raises `OSError`.
    """
    files = machine.files
    remaining = []
    for place in (place for worker in plan.removed for place in machine.places(worker)):
        path = machine.path(place)
        if not files.exists(path):
            continue
        others = machine.others_in(place)
        if others:
            remaining.append(f"{path} stays, because {others[0]} is in it, which is not Odradek's")
        else:
            files.remove_directory(path)
            files.fsync_directory(parent_of(path))
    return remaining
