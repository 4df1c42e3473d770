"""A short run of `kill_kafka_streams`; the command makes longer ones."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.crash.kill_kafka_streams import PROPERTIES, Run
from tests.crash.kill_nine import SERVERS

pytestmark = [pytest.mark.crash, pytest.mark.java, pytest.mark.timeout(300)]


def test_an_application_that_is_killed_with_its_broker_counts_each_word_once(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server = SERVERS[request.config.getoption("--server")](tmp_path / "server", PROPERTIES).start()
    try:
        result = Run(server, random.Random(1), tmp_path).kill_and_check(2)
    finally:
        server.kill()
    assert result["words"] > 100
    assert "Traceback" not in server.printed(), server.printed()[-8000:]
