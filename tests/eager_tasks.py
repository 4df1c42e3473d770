"""Eager tasks (Python 3.12), which run in `create_task` until their first wait: of all tests, `ODRADEK_EAGER_TASKS=1`.

A program may set such a factory for its own loop, in which the client and embedded brokers then run.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")


def make_tasks_eager_if_wanted() -> None:
    """Make tasks eager if `ODRADEK_EAGER_TASKS=1`. Call it once in each process."""
    if os.environ.get("ODRADEK_EAGER_TASKS") == "1":
        make_tasks_eager()


def make_tasks_eager() -> None:
    """Set an eager task factory for each loop of `asyncio.Runner`: those of asyncio.run, uvloop.run and the tests."""
    if sys.version_info < (3, 12):
        raise RuntimeError("ODRADEK_EAGER_TASKS=1 needs Python 3.12")
    asyncio.Runner.get_loop = _with_eager_tasks(asyncio.Runner.get_loop)  # type: ignore[method-assign]
    asyncio.Runner.run = _with_loop(asyncio.Runner.run)  # type: ignore[method-assign]


def _with_eager_tasks(
    get_loop: Callable[[asyncio.Runner], asyncio.AbstractEventLoop],
) -> Callable[[asyncio.Runner], asyncio.AbstractEventLoop]:
    def get_eager_loop(runner: asyncio.Runner) -> asyncio.AbstractEventLoop:
        loop = get_loop(runner)
        if loop.get_task_factory() is None:
            loop.set_task_factory(eager_task)
        return loop

    return get_eager_loop


def _with_loop(run: Callable[..., T]) -> Callable[..., T]:
    def get_loop_and_run(
        runner: asyncio.Runner, coroutine: Coroutine[Any, Any, Any], *, context: Context | None = None
    ) -> T:
        runner.get_loop()
        return run(runner, coroutine, context=context)

    return get_loop_and_run


def eager_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **arguments: Any) -> asyncio.Task[Any]:
    """Like `asyncio.eager_task_factory`, but also for uvloop, which always passes `eager_start`, as None."""
    return asyncio.Task(coroutine, loop=loop, **arguments | {"eager_start": True})


def ordinary_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **arguments: Any) -> asyncio.Task[Any]:
    """The task of a loop without a factory."""
    arguments.pop("eager_start", None)
    return asyncio.Task(coroutine, loop=loop, **arguments)
