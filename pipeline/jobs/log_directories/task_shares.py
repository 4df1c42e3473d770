"""Divide files of a log directory among Spark's tasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T", bound=tuple[Any, ...])

_TASKS_PER_SLOT = 4  # several, so that one slow task does not delay the job for long


def task_count(spark: SparkSession) -> int:
    """Return the number of tasks to divide a job into."""
    return int(spark.sparkContext.defaultParallelism) * _TASKS_PER_SLOT


def divide(sized: Iterable[tuple[int, T]], tasks: int) -> list[list[T]]:
    """Divide items, given with their sizes, into at most `tasks` shares of about one size, the largest items first."""
    shares: list[list[T]] = [[] for _ in range(tasks)]
    sizes = [0] * tasks
    for size, item in sorted(sized, reverse=True):
        least = min(range(tasks), key=lambda task: (sizes[task], len(shares[task])))
        shares[least].append(item)
        sizes[least] += size
    return [share for share in shares if share]
