from __future__ import annotations

import traceback

import pytest

from odradek.broker.coordinator.runtime.events import PendingReply
from odradek.protocol.errors import ErrorCode, KafkaError


def _unused() -> None:
    raise AssertionError("no future is needed")


def test_one_error_for_many_requests_does_not_grow() -> None:
    shared = KafkaError(ErrorCode.NOT_COORDINATOR, "moved")
    raised = []
    for _ in range(3):
        pending = PendingReply()
        pending.complete(shared)
        with pytest.raises(KafkaError, match="moved") as info:
            pending.result(_unused)  # type: ignore[arg-type]
        raised.append(len(traceback.extract_tb(info.value.__traceback__)))

    assert shared.__traceback__ is None
    assert len(set(raised)) == 1
