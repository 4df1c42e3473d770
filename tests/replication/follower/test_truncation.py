from __future__ import annotations

import pytest

from odradek.broker.replication.follower.truncation import truncation_offset
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir
from tests.storage.logs import TOPIC_ID, append


@pytest.mark.parametrize(
    ("diverging_epoch", "end_offset", "kept"),
    [
        (2, 4, 4),  # both have epoch 2, the leader less of it
        (2, 9, 5),  # both have epoch 2, this log less of it
        (4, 9, 5),  # epoch 4 is not here: what is before it
        (5, 6, 6),  # the last epoch
        (5, 99, 7),
        (1, 1, 1),  # before all epochs here
        (0, 3, 2),
    ],
)
def test_a_log_keeps_what_it_shares_with_its_leader(
    log_dir: LogDir, diverging_epoch: int, end_offset: int, kept: int
) -> None:
    log = log_dir.create_log("t", 0, TOPIC_ID, LogConfig())
    append(log, b"a", b"b", leader_epoch=0)
    log.truncate_fully_and_start_at(2)
    append(log, b"c", b"d", b"e", leader_epoch=2)  # 2 to 4
    append(log, b"f", b"g", leader_epoch=5)  # 5 and 6

    assert truncation_offset(log, diverging_epoch, end_offset) == kept


def test_a_log_without_epochs_keeps_up_to_the_end_of_the_leader(log_dir: LogDir) -> None:
    log = log_dir.create_log("t", 0, TOPIC_ID, LogConfig())
    append(log, b"a", b"b", leader_epoch=-1)

    assert truncation_offset(log, 3, 1) == 1
    assert truncation_offset(log, 3, 9) == 2
