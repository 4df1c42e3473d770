"""The Python processes in which Spark plans queries and runs tasks, and what spares them work.

Spark keeps such a process, and lets it collect its garbage after every task and every plan. A collection goes over all
objects of all modules, 0.05 s, a third of what a task of 250,000 records takes, and finds next to nothing. So what is
there at the first call, mostly modules, is left out of collections. To be called by whatever Spark calls.
"""

from __future__ import annotations

import functools
import gc
import sys


@functools.cache
def spare_collections() -> None:
    """Leave the objects that there are now out of collections: once, and only in Spark's processes."""
    if _is_sparks():
        gc.freeze()


def _is_sparks() -> bool:
    """Whether this process was forked by Spark's daemon: in the user's own one, collections are the user's affair."""
    started = getattr(sys.modules["__main__"], "__spec__", None)
    return started is not None and started.name == "pyspark.daemon"
