"""Go modules: their source, tests included, comes with the ordinary `go mod download`."""

from __future__ import annotations

import json
import re
import shutil
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from tests.peers.availability import PEERS
from tests.peers.suites.outcomes import Outcome, Outcomes, Result
from tests.peers.suites.processes import lines_of, run

# Writable, so that `make clean` can remove it; missing entries of go.sum are added in the copy.
ENVIRONMENT = {"GOMODCACHE": str(PEERS / "go"), "GOFLAGS": "-modcacherw -mod=mod", "GOBIN": str(PEERS / "go-bin")}

_FETCH_SECONDS = 300
_OUTPUT_LINES = 40
_RESULTS = {"pass": Result.PASSED, "fail": Result.FAILED, "skip": Result.SKIPPED}


def go() -> str:
    found = shutil.which("go")
    if found is None:
        raise SystemExit("go is not installed: see https://go.dev/doc/install")
    return found


def copy_module(module: str, version: str, target: Path) -> None:
    """Fetch a module, and copy its source to `target`."""
    PEERS.mkdir(exist_ok=True)
    printed = run([go(), "mod", "download", "-json", f"{module}@{version}"], PEERS, ENVIRONMENT, _FETCH_SECONDS)
    shutil.copytree(json.loads(printed)["Dir"], target)
    for path in [target, *target.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)


def install(package: str, version: str) -> Path:
    """Build a command, and return its directory."""
    run([go(), "install", f"{package}@{version}"], PEERS, ENVIRONMENT, _FETCH_SECONDS)
    return PEERS / "go-bin"


def run_tests(
    directory: Path,
    packages: Sequence[str],
    environment: Mapping[str, str],
    *,
    timeout: float,
    log: Path,
    arguments: Sequence[str] = (),
    skip: Collection[str] = (),
    only: Collection[str] = (),
) -> Outcomes:
    """Run `go test` on the packages of a module for at most `timeout` seconds.

    `skip` are the tests to leave out, `only` those to run (empty: all others); both by the names of `Outcomes`.
    """
    command = [go(), "test", "-json", "-count=1", f"-timeout={timeout:.0f}s", *arguments]
    if skip:
        command.append(f"-skip={patterns([_without_package(name) for name in skip])}")
    if only:  # the outer test as a whole, for its inner tests may depend on each other
        command.append(f"-run={patterns([_without_package(name).partition('/')[0] for name in only])}")
    # The time includes compilation; go itself stops its tests a little earlier, with their stacks.
    lines = lines_of([*command, *packages], directory, {**ENVIRONMENT, **environment}, timeout + 300, log)
    return outcomes_of(lines)


def outcomes_of(lines: Iterable[str]) -> Outcomes:
    """Parse the output of `go test -json`. Tests are named `package.Test/inner`, the package without its path.

    A test that has started and not ended has failed; so has a package whose tests could not run, under its own name.
    """
    outcomes: Outcomes = {}
    outputs: dict[str, deque[str]] = {}
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        name = _name(event)
        if event["Action"] == "output":
            outputs.setdefault(name, deque(maxlen=_OUTPUT_LINES)).append(event["Output"])
        elif event["Action"] == "run":
            outcomes[name] = Outcome(Result.FAILED, "it did not end\n")
        elif event["Action"] in _RESULTS:
            output = "".join(outputs.pop(name, ()))
            _note(outcomes, name, Outcome(_RESULTS[event["Action"]], output), is_test="Test" in event)
    return outcomes


def _note(outcomes: Outcomes, name: str, outcome: Outcome, *, is_test: bool) -> None:
    if outcome.result is not Result.FAILED:
        outcome.output = ""
    blamed = any(other.startswith(f"{name}.") and each.result is Result.FAILED for other, each in outcomes.items())
    if is_test or (outcome.result is Result.FAILED and not blamed):
        outcomes[name] = outcome


def _name(event: Mapping[str, str]) -> str:
    # A package that does not build has an ImportPath with the tests' name after a space.
    package = (event.get("Package") or event.get("ImportPath", "")).split(" ")[0].rsplit("/", 1)[-1]
    return f"{package}.{event['Test']}" if "Test" in event else package


def patterns(tests: Collection[str]) -> str:
    """Return the pattern of tests for go's options, without packages: one part for each level, separated by slashes."""
    return "|".join(sorted({"/".join(f"^{re.escape(level)}$" for level in test.split("/")) for test in tests}))


def _without_package(name: str) -> str:
    return name.partition(".")[2]
