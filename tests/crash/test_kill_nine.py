"""A short run of `kill_nine`; `make crash` makes the long one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.crash.kill_nine import PROPERTIES, SERVERS, kill_and_check

pytestmark = [pytest.mark.crash, pytest.mark.timeout(300)]


def test_thirty_kills_lose_no_acknowledged_record(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server = SERVERS[request.config.getoption("--server")](tmp_path, PROPERTIES).start()
    try:
        records = kill_and_check(server, 30, random.Random(9))
    finally:
        server.kill()
    assert min(records.values()) > 1_000
    assert "Traceback" not in server.printed(), server.printed()[-8000:]
