"""Some thousand mutated requests; `python -m tests.fuzz.listener` runs for any time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.listener import PROPERTIES, SERVERS, Bombardment

pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(300)]

WARM_UP, ROUND = 1_000, 3_000
ALLOWED_GROWTH = 16 << 20
"""Bytes for topics of mutated CreateTopics requests and for the allocator. A leak of 6 KiB a connection is more."""


def test_mutated_requests_have_no_lasting_effect(request: pytest.FixtureRequest, tmp_path: Path) -> None:
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
        assert server.open_files() - files < 100  # there were thousands of connections
        assert bombardment.answers > bombardment.connections / 5, "requests got past the first bytes"
        assert server.stop() in (0, 143)  # Java exits with 143 after SIGTERM
    finally:
        server.kill()
