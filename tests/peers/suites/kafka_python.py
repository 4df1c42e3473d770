"""kafka-python's integration tests, which come in its source distribution."""

from __future__ import annotations

import sys
import tarfile
import xml.etree.ElementTree as ET
from collections.abc import Collection, Mapping
from pathlib import Path

from tests.peers.availability import PEERS
from tests.peers.server import Server
from tests.peers.suites.outcomes import Outcome, Outcomes, Result
from tests.peers.suites.processes import lines_of, run

_SECONDS = 900
_SECONDS_A_TEST = 120
_FETCH_SECONDS = 300

# The distribution lacks this module: it contains only modules named test*.py.
_SERVICE = '''
class ExternalService:
    """The broker of this run, in place of the suite's own."""

    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    def close(self):
        pass


class SpawnedService:
    """Never used, because these tests start no broker."""
'''


class KafkaPython:
    name = "kafka-python"
    version = "3.0.12"

    def properties(self, port: int) -> Mapping[str, str]:
        return {
            "node.id": "0",
            "num.partitions": "4",
            "group.min.session.timeout.ms": "100",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        }

    def prepare(self, directory: Path, broker: Server) -> None:
        archive = self._source_distribution()
        with tarfile.open(archive) as file:
            file.extractall(directory, filter="data")
        tests = self._root(directory) / "test"
        (tests / "__init__.py").touch()
        (tests / "service.py").write_text(_SERVICE)

    def run(self, directory: Path, broker: Server, log: Path, skip: Collection[str], only: Collection[str]) -> Outcomes:
        root = self._root(directory)
        report = directory / "report.xml"
        report.unlink(missing_ok=True)
        environment = {
            "PYTHONPATH": str(root),
            "KAFKA_URI": f"kafka://{broker.bootstrap}",
            "KAFKA_VERSION": "4.3.1",
            "KAFKA_ROOT": str(root),
        }
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "log_level=INFO"]
        command += [f"--timeout={_SECONDS_A_TEST}", f"--junitxml={report}"]
        command += [f"--deselect={name}" for name in skip]
        command += sorted(only) or ["test/integration"]
        with log.open("a") as file:
            file.writelines(lines_of(command, root, environment, _SECONDS, log))
        return _read(report)

    def _source_distribution(self) -> Path:
        target = PEERS / "sdist"
        archive = target / f"kafka_python-{self.version}.tar.gz"
        if not archive.exists():
            wanted = f"kafka-python=={self.version}"
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=:all:"]
            target.mkdir(parents=True, exist_ok=True)
            run([*command, f"--dest={target}", wanted], target, {}, _FETCH_SECONDS)
        return archive

    def _root(self, directory: Path) -> Path:
        return directory / f"kafka_python-{self.version}"


def _read(report: Path) -> Outcomes:
    """Read pytest's report; tests are named as on its command line."""
    if not report.exists():
        return {"test/integration": Outcome(Result.FAILED, "pytest did not come to its end\n")}
    outcomes: Outcomes = {}
    for case in ET.parse(report).iter("testcase"):
        module, classes = _module_and_classes(case.get("classname", ""))
        name = "::".join([module, *classes, case.get("name", "")])
        problem = next((each for kind in ("failure", "error") if (each := case.find(kind)) is not None), None)
        if problem is not None:
            outcomes[name] = Outcome(Result.FAILED, (problem.text or "")[-4000:])
        elif name not in outcomes:
            outcomes[name] = Outcome(Result.SKIPPED if case.find("skipped") is not None else Result.PASSED)
    return outcomes


def _module_and_classes(dotted: str) -> tuple[str, list[str]]:
    """`test.integration.test_x.TestY` is the module `test/integration/test_x.py` and the class `TestY`."""
    parts = dotted.split(".")
    end = next((index for index, part in enumerate(parts) if part.startswith("test_")), len(parts) - 1) + 1
    return "/".join(parts[:end]) + ".py", parts[end:]
