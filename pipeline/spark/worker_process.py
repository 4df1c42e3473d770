"""The Python processes in which Spark plans queries and runs tasks: what spares them work, and needless words.

A collection of garbage goes over all objects of all modules, and finds next to nothing. There are two kinds:

| when | time |
|---|---|
| Python's own, on the way while these packages are imported | 0.04 of 0.1 s, for PySpark and pyarrow are there |
| what Spark asks for after every task and every plan | 0.05 s, a third of a task of 250,000 records |

So what is there when the import begins is left out of collections, and again what is there at the first call.

A query that needs only some of the rows, as `show()` does, makes Java close the socket of a worker that still writes.
PySpark's daemon prints a traceback for that, though no row is lost and nothing went wrong. Here it prints none.
"""

from __future__ import annotations

import functools
import gc
import sys
import traceback
from typing import Any


def spare_imports() -> None:
    """Leave the objects that there are now out of collections, but only in Spark's processes."""
    if _is_sparks():
        gc.freeze()


@functools.cache
def spare_collections() -> None:
    """The same when all modules are there: once. To be called by whatever Spark calls."""
    spare_imports()


def hang_up_quietly() -> None:
    """Let a worker that Java does not listen to any more end without a traceback, but only in Spark's processes."""
    if not _is_sparks():
        return
    print_exc = traceback.print_exc

    def print_what_went_wrong(*arguments: Any, **named: Any) -> None:
        if not isinstance(sys.exception(), BrokenPipeError):
            print_exc(*arguments, **named)

    traceback.print_exc = print_what_went_wrong


def _is_sparks() -> bool:
    """Whether Spark has started this process: in the user's own one, collections are the user's affair."""
    started = getattr(sys.modules["__main__"], "__spec__", None)
    return started is not None and started.name.startswith("pyspark.")
