"""A short run of `kill_at_rolls`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.crash.kill_at_rolls import Outcome, kill_and_check, properties
from tests.peers import odradek
from tests.peers.server import free_port

pytestmark = pytest.mark.crash


@pytest.mark.parametrize("segment_bytes", [2048, 8192])
async def test_kills_near_rolls_lose_duplicate_and_reorder_no_record(tmp_path: Path, segment_bytes: int) -> None:
    port = free_port()
    server = odradek.prepare(tmp_path, properties(port, segment_bytes)).start()
    try:
        outcome = await kill_and_check(server, port, 3, random.Random(5))
    finally:
        server.kill()
    assert outcome == Outcome(outcome.records, failed=0, missing=0, doubled=0, out_of_order=0)
    assert "Traceback" not in server.printed(), server.printed()[-8000:]
