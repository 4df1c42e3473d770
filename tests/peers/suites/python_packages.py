"""Python packages: their source distributions, tests included, come with the ordinary `pip download`."""

from __future__ import annotations

import sys
import tarfile
import xml.etree.ElementTree as ET
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from tests.peers.availability import PEERS
from tests.peers.suites.outcomes import Outcome, Outcomes, Result
from tests.peers.suites.processes import lines_of, run

_FETCH_SECONDS = 300


def unpack(package: str, version: str, directory: Path) -> Path:
    """Fetch a source distribution, unpack it in `directory`, and return the root of its files."""
    root = f"{package.replace('-', '_')}-{version}"
    target = PEERS / "sdist"
    archive = target / f"{root}.tar.gz"
    if not archive.exists():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", f"--no-binary={package}"]
        target.mkdir(parents=True, exist_ok=True)
        run([*command, f"--dest={target}", f"{package}=={version}"], target, {}, _FETCH_SECONDS)
    with tarfile.open(archive) as file:
        file.extractall(directory, filter="data")
    return directory / root


def run_tests(
    root: Path,
    tests: str,
    environment: Mapping[str, str],
    *,
    timeout: float,
    test_timeout: float,
    log: Path,
    python: str | Path = sys.executable,
    arguments: Sequence[str] = (),
    skip: Collection[str] = (),
    only: Collection[str] = (),
) -> Outcomes:
    """Run pytest on `tests`, relative to `root`, for at most `timeout` seconds, and `test_timeout` for each test.

    `skip` are the tests to leave out, `only` those to run (empty: all others); both by the names of `Outcomes`.
    """
    report = root / "report.xml"
    report.unlink(missing_ok=True)
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    command += [f"--timeout={test_timeout:.0f}", f"--junitxml={report}", *(f"--deselect={name}" for name in skip)]
    command += sorted(only) or [tests]
    with log.open("a") as file:
        file.writelines(lines_of(command, root, {"PYTHONPATH": str(root), **environment}, timeout, log))
    if not report.exists():
        return {tests: Outcome(Result.FAILED, "pytest did not come to its end\n")}
    return outcomes_of(report.read_text())


def outcomes_of(report: str) -> Outcomes:
    """Parse pytest's report as XML; tests are named as on its command line."""
    outcomes: Outcomes = {}
    for case in ET.fromstring(report).iter("testcase"):
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
