"""Some thousand spoiled requests; `python -m tests.fuzz.listener` goes on for as long as wanted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.listener import PROPERTIES, SERVERS, Bombardment

pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(300)]

WARM_UP, ROUND = 1_000, 3_000
ALLOWED_GROWTH = 16 << 20
"""Bytes: topics that a spoiled CreateTopics made, and noise of the allocator. A leak of 6 KiB a connection is more."""


def test_spoiled_requests_leave_nothing_behind(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server = SERVERS[request.config.getoption("--server")](tmp_path, PROPERTIES).start()
    try:
        bombardment = Bombardment(server, seed=3)
        bombardment.run(WARM_UP)
        bombardment.check_service()
        memory, files = server.resident_bytes(), server.open_files()
        bombardment.run(ROUND)
        bombardment.check_process()
        bombardment.check_service()
        if server.kind == "odradek":  # the heap of a Java process grows until it is full
            assert server.resident_bytes() - memory < ALLOWED_GROWTH
        assert server.open_files() - files < 100  # connections number thousands
        assert bombardment.answers > bombardment.connections / 5, "requests got past the first bytes"
        assert server.stop() in (0, 143)  # Java ends a SIGTERM with 143
    finally:
        server.kill()
