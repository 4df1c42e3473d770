"""A simulated directory opened again, and what must hold of it."""

from __future__ import annotations

from odradek.broker.inspection.problem import Problem
from odradek.broker.inspection.verification import Verification
from odradek.broker.randomness import SeededRandomness
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.testing.clock import ManualClock
from tests.storage.logs import CLUSTER, NODE, NOW
from tests.storage.simulated_disk import Directory, SimulatedFiles

CONFIG = LogConfig(segment_bytes=330, index_interval_bytes=100, segment_index_bytes=400, file_delete_delay_ms=0)


PATH = "/data"


def open_on(files: SimulatedFiles, config: LogConfig = CONFIG) -> LogDir:
    log_dir = LogDir(PATH, files=files, clock=ManualClock(NOW), randomness=SeededRandomness(3), max_open_files=4)
    log_dir.open(lambda _: config, node_id=NODE, cluster_id=CLUSTER)
    return log_dir


def assert_sound(root: Directory, *, may_lack_epochs: bool = False) -> None:
    """Every index, snapshot and epoch of the log is what a walk over its batches makes of it.

    Where the start of a log was moved to its end, and a stop came after the epochs before it went and before the start
    was checkpointed, nothing is known of the epochs of what is there again; so it is in Kafka.
    """
    problems: list[Problem] = []
    Verification(PATH, problems.append, lambda done, total: None, SimulatedFiles(root)).run()
    unsound = [problem for problem in problems if problem.path.startswith("t-0/")]
    assert [each for each in unsound if not (may_lack_epochs and "has epoch -1" in each.problem)] == []
