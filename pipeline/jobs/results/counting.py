"""Count records while Spark writes them, so that the summary of a job needs no second pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def size_of_records() -> Column:
    """Return the bytes of a record's key and value."""
    from pyspark.sql import functions as f

    return f.coalesce(f.length("key"), f.lit(0)) + f.coalesce(f.length("value"), f.lit(0))


def counted(records: DataFrame) -> tuple[DataFrame, Callable[[], dict[str, int]]]:
    """Return the DataFrame, observed, and a function that returns `records` and `bytes` once it has been written."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    observation = Observation()
    observed = records.observe(
        observation,
        f.count(f.lit(1)).alias("records"),
        f.coalesce(f.sum(size_of_records()), f.lit(0)).alias("bytes"),
    )
    return observed, lambda: {name: int(count) for name, count in observation.get.items()}
