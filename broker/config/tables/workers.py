"""Properties of several processes on one machine; none of these is Kafka's."""

from __future__ import annotations

import os

from odradek.broker.config.property import Property, Table
from odradek.broker.config.types import BOOLEAN, InvalidValueError, Type, TypeCode

_MAX_WORKERS = 64


def _workers(text: str) -> int:
    if text.lower() == "auto":
        return max(1, min(_processors(), _MAX_WORKERS))
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= _MAX_WORKERS:
        raise InvalidValueError(f"expected auto, or a number from 1 to {_MAX_WORKERS}")
    return int(text)


def _processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# A row is read as a row: name, type, default and bound stay on one line.
# fmt: off


class WorkerProperties(Table):
    """Several processes on one machine."""

    num_workers = Property(
        "num.workers", Type(TypeCode.INT, _workers), 1, own=True,
        doc="The number of processes that serve this configuration, each as a broker of its own; auto: one for each "
        "processor. Worker k has node.id + 1000 k, its ports are k higher, and its log directories are worker.k in "
        "each of log.dirs.",
    )
    workers_count_as_brokers = Property(
        "workers.count.as.brokers", BOOLEAN, False, own=True,
        doc="Whether one machine may have several replicas of a partition, on different workers. For tests: they all "
        "fail with the machine.",
    )
