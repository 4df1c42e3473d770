"""A short run of the checker; `python -m tests.checker` runs more seeds with more faults."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.checker.analysis import find_anomalies
from tests.checker.history import Outcome
from tests.checker.nemesis import OneServer
from tests.checker.workload import Workload
from tests.interop.conftest import KINDS


@pytest.mark.crash
def test_transactions_are_whole_although_the_server_is_killed_and_paused(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server = KINDS[request.config.getoption("--server")](tmp_path).start()
    try:
        history = Workload(OneServer(server), seed=1, faults=3).run()
    finally:
        server.kill()

    assert find_anomalies(history) == []
    outcomes = Counter(each.outcome for each in history.transactions)
    assert outcomes[Outcome.COMMITTED] > 5
    assert outcomes[Outcome.ABORTED] > 2
    assert "Traceback" not in server.printed(), server.printed()[-8000:]
