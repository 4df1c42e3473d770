"""The first process of `num.workers` ones: it starts the others, restarts them, stops them, and serves nobody.

```
start   fork all workers ─► own and serve the metadata store, without etcd ─► let them begin
stop    SIGTERM, SIGINT ─► SIGTERM to all workers ─► wait for them ─► close the store
```

It ends with status 0 if a signal stopped it and every worker stopped cleanly. It ends with 1 if worker 0 cannot start,
or a worker must not start; the workers have printed why. It also ends with 1 if the metadata store fails.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence

from odradek.broker.clock import SystemClock
from odradek.broker.config import BrokerConfig
from odradek.broker.startup.worker_directories import check_finished, partitions_left_behind
from odradek.broker.storage.log_dir import LogDirRefusedError
from odradek.broker.structured_logging import StructuredLogger
from odradek.broker.workers.first_processes import WaitingProcess
from odradek.broker.workers.owned_store import served_store
from odradek.broker.workers.worker_process import WorkerProcess, WorkerRefusedError

_LOG = StructuredLogger(__name__)


def check(config: BrokerConfig) -> None:
    """Raise `LogDirRefusedError` if partitions are not where the workers of `config` would serve them."""
    check_finished(config)
    for reason in partitions_left_behind(config):
        raise LogDirRefusedError(reason)


async def supervise(config: BrokerConfig, arguments: Sequence[str], first: Sequence[WaitingProcess]) -> int:
    """Run the workers of `config` until a signal; return the exit status.

    `arguments` are those of the command line, which each worker gets; `first`: the processes of all of them, if they
    are there already. Raises `StoreError`, `MalformedFileError` and `OSError` if the metadata store cannot be served.
    """
    clock = SystemClock()
    processes = [
        WorkerProcess(number, arguments, clock, first[number] if first else None)
        for number in range(config.num_workers)
    ]
    if config.metadata_etcd_endpoints:
        return await _Supervisor(processes).run()
    async with served_store(config, clock) as failing:
        return await _Supervisor(processes).run(failing)


class _Supervisor:
    def __init__(self, workers: Sequence[WorkerProcess]) -> None:
        self._workers = workers

    async def run(self, failing: asyncio.Task[None] | None = None) -> int:
        """Run the workers until a signal, or until one cannot start or `failing` ends; return the exit status."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, signal.Signals(number).name)
        _LOG.info("starting workers", count=len(self._workers))
        keeping = [loop.create_task(worker.keep()) for worker in self._workers]
        watched = [*keeping, *([] if failing is None else [failing])]
        done, _ = await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
        has_failed = False
        if failing is not None and failing.done():
            has_failed = True
            _LOG.error("metadata store failed", reason=str(failing.exception()))
        if has_failed or any(task.exception() for task in done):
            self._stop("a failure")
        results = await asyncio.gather(*keeping, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, WorkerRefusedError):
                raise result
        _LOG.info("stopped")
        return int(has_failed or any(result != 0 for result in results))

    def _stop(self, reason: str) -> None:
        _LOG.info("stopping workers", reason=reason)
        for worker in self._workers:
            worker.stop()
