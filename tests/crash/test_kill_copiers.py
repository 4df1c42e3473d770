"""A short run of `kill_copiers`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.crash.kill_copiers import PROPERTIES, OneServer, kill_and_check
from tests.crash.kill_nine import SERVERS

pytestmark = [pytest.mark.crash, pytest.mark.java, pytest.mark.timeout(300)]


def test_a_topic_is_copied_exactly_once_although_broker_and_copiers_are_killed(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server = SERVERS[request.config.getoption("--server")](tmp_path, PROPERTIES).start()
    try:
        outcome = kill_and_check(OneServer(server), tmp_path, 3, random.Random(2), session_ms=1200)
    finally:
        server.kill()
    assert outcome.copied > 500
    assert "Traceback" not in server.printed(), server.printed()[-8000:]
