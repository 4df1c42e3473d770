"""Crates: their source, tests included, comes with the ordinary `cargo fetch`."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from tests.peers.availability import PEERS
from tests.peers.suites.outcomes import Outcome, Outcomes, Result
from tests.peers.suites.processes import lines_of, run

ENVIRONMENT = {"CARGO_HOME": str(PEERS / "cargo"), "CARGO_TARGET_DIR": str(PEERS / "cargo-target")}

_FETCH_SECONDS = 600
_BUILD_SECONDS = 1800
_RESULTS = {"ok": Result.PASSED, "FAILED": Result.FAILED, "ignored": Result.SKIPPED}
_MANIFEST = """
[package]
name = "fetch"
version = "0.0.0"
[lib]
path = "empty.rs"
[dependencies]
{crate} = "={version}"
"""


def cargo() -> str:
    found = shutil.which("cargo")
    if found is None:
        raise SystemExit(
            "cargo is not installed: see https://doc.rust-lang.org/cargo/getting-started/installation.html"
        )
    return found


def copy_crate(crate: str, version: str, target: Path, *, update: Sequence[str] = ()) -> None:
    """Fetch a crate, and copy its source to `target`; its lock file gets the newest releases of the crates `update`."""
    fetching = PEERS / f"fetch-{crate}"
    fetching.mkdir(parents=True, exist_ok=True)
    (fetching / "Cargo.toml").write_text(_MANIFEST.format(crate=crate, version=version))
    (fetching / "empty.rs").touch()
    run([cargo(), "fetch", "--quiet"], fetching, ENVIRONMENT, _FETCH_SECONDS)
    (source,) = (PEERS / "cargo" / "registry" / "src").glob(f"*/{crate}-{version}")
    shutil.copytree(source, target)
    (target / "rust-toolchain.toml").unlink(missing_ok=True)  # it would make rustup fetch another compiler
    if update:
        run([cargo(), "update", "--quiet", *update], target, ENVIRONMENT, _FETCH_SECONDS)


def run_tests(
    directory: Path,
    targets: Sequence[str],
    environment: Mapping[str, str],
    *,
    timeout: float,
    log: Path,
    skip: Collection[str] = (),
    only: Collection[str] = (),
) -> Outcomes:
    """Build the test targets of a crate, and run each for at most `timeout` seconds.

    `skip` are the tests to leave out, `only` those to run (empty: all others); both by the names of `Outcomes`.
    """
    outcomes: Outcomes = {}
    for target in targets:
        wanted = _tests_of(target, only)
        if only and not wanted:
            continue
        command = [cargo(), "test", "--locked", f"--test={target}"]
        run([*command, "--no-run", "--quiet"], directory, ENVIRONMENT, _BUILD_SECONDS)
        chosen = [*wanted, *(f"--skip={test}" for test in _tests_of(target, skip)), "--exact"]
        lines = lines_of([*command, "--", *chosen], directory, {**ENVIRONMENT, **environment}, timeout, log)
        outcomes |= outcomes_of(target, lines)
    return outcomes


def _tests_of(target: str, names: Collection[str]) -> list[str]:
    return [test for owner, _, test in (name.partition("::") for name in names) if owner == target and test]


def outcomes_of(target: str, lines: Iterable[str]) -> Outcomes:
    """Parse the output of `cargo test` on one test target. Tests are named `target::test`.

    Without the summary of the harness, the target has failed, under its own name.
    """
    outcomes: Outcomes = {}
    ended = False
    shown = ""
    for line in lines:
        if (match := re.match(r"test (\S+) \.\.\. (ok|FAILED|ignored)", line)) is not None:
            outcomes[f"{target}::{match[1]}"] = Outcome(_RESULTS[match[2]])
        elif (match := re.match(r"---- (\S+) stdout ----", line)) is not None:
            shown = f"{target}::{match[1]}"
        elif re.match(r"failures:|test result: ", line):
            shown = ""
            ended = ended or line.startswith("test result: ")
        elif shown in outcomes:
            outcomes[shown].output += line
    if not ended:
        outcomes[target] = Outcome(Result.FAILED, "it did not come to its end\n")
    return outcomes
