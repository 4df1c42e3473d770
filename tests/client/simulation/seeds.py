"""Functions that a pool of processes runs. Those of `__main__` cannot be imported there."""

from __future__ import annotations

import logging

from tests.client.simulation.simulation import Outcome, simulate
from tests.client.virtual_time import SpinningError
from tests.eager_tasks import make_tasks_eager_if_wanted


def prepare() -> None:
    """Prepare a process."""
    logging.disable(logging.CRITICAL)  # every fault is a line in the log of the client
    make_tasks_eager_if_wanted()


def run(seed: int) -> Outcome:
    """Run a seed."""
    try:
        return simulate(seed)
    except SpinningError as error:
        return Outcome(seed, [f"a task spins: {error}"], [], 0, 0, 0)
