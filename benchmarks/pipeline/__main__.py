"""`python -m benchmarks.pipeline`: run the chosen parts, and write the page after each."""

from __future__ import annotations

import argparse
import compileall
import tempfile
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import benchmarks.pipeline
from benchmarks.pipeline.latency import RECORDS, latencies
from benchmarks.pipeline.queries import READS, Queries
from benchmarks.pipeline.report import write_page
from benchmarks.pipeline.results import Part, Row, load, rows_of, store
from benchmarks.pipeline.rounds import in_turns
from benchmarks.pipeline.stages import stages
from odradek.pipeline import session
from odradek.pipeline.spark.project_archive import PACKAGES
from tests.peers import connector, odradek

WARM_UP_ROUNDS = 2
FIRST_WARM_UP_ROUNDS = 6  # for a dozen queries Java still compiles
SLOW = {"parquet": 3, "stream": 3}  # the most rounds of queries that take longer
STAGE_RECORDS = 500_000
QUICK_RECORDS = [20_000, 100_000]


class Work(NamedTuple):
    """Queries of one part: all `works` on topics of one codec and size of values; a fraction of the records."""

    works: tuple[str, ...]
    codec: str = "none"
    value: int = 100
    divisor: int = 1


PARTS: dict[str, list[Work]] = {
    "read": [Work(READS)],
    "codecs": [Work(("noop",), "lz4"), Work(("noop",), "zstd")],
    "write": [Work(("write",)), Work(("write",), "lz4")],
    "stream": [Work(("stream",))],
    "values": [Work(("noop", "write"), value=1024, divisor=5)],
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=benchmarks.pipeline.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = [*PARTS, "latency", "worker"]
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(every)}; the default is all")
    parser.add_argument("--records", nargs="+", type=int, default=[1_000_000, 5_000_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="few records in one round, to try the benchmark")
    parser.add_argument("--conf", nargs="+", default=[], metavar="NAME=VALUE", help="more settings of the session")
    parser.add_argument("--output", type=Path, help="the page; its figures are stored beside it with .json")
    chosen = parser.parse_args()
    if unknown := set(chosen.parts) - set(every):
        parser.error(f"unknown part {', '.join(sorted(unknown))}: choose from {', '.join(every)}")
    if chosen.quick:
        chosen.records, chosen.rounds = QUICK_RECORDS, 1
    for package in PACKAGES:  # as pip does; without bytecode files each worker would compile them
        compileall.compile_dir(Path(__file__).resolve().parents[2] / package, quiet=1)
    with tempfile.TemporaryDirectory() as temporary:
        _run(chosen, [name for name in every if not chosen.parts or name in chosen.parts], Path(temporary))


def _run(chosen: argparse.Namespace, names: list[str], directory: Path) -> None:
    config = {
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": "2",
        "spark.local.dir": str(directory),
        **dict(setting.split("=", 1) for setting in chosen.conf),
    }
    spark = session("benchmark", master="local[2]", jars=connector.jars().split(","), config=config)
    spark.sparkContext.setLogLevel("ERROR")
    server = odradek.prepare(directory / "server").start()
    stored = chosen.output.with_suffix(".json") if chosen.output else None
    parts = load(stored) if stored else {}
    measure = _Measure(Queries(spark, server, directory), chosen)
    try:
        for name in names:
            start = time.monotonic()
            found = measure.part(name)
            settings = {"rounds": chosen.rounds, "conf": chosen.conf}
            parts[name] = {"measured": f"{datetime.now(UTC):%Y-%m-%d}", **settings, **found}
            print(f"{name}: {time.monotonic() - start:.0f} s", flush=True)
            if stored:
                store(stored, parts)
                write_page(chosen.output, load(stored))
    finally:
        spark.stop()
        server.stop()


class _Measure:
    """The parts on one session; Java warms up in the first one."""

    def __init__(self, queries: Queries, chosen: argparse.Namespace) -> None:
        self._queries = queries
        self._chosen = chosen
        self._is_warm = False

    def part(self, name: str) -> Part:
        """Measure a part and print its figures."""
        if name == "latency":
            found = latencies(self._queries, 10 if self._chosen.quick else RECORDS)
            print(found)
            return {"latency": found}
        if name == "worker":
            return {"stages": self._stages()}
        rows = [row for work in PARTS[name] for row in self._rows(work)]
        return {"rows": rows}

    def _rows(self, part: Work) -> list[Row]:
        rows: list[Row] = []
        sizes = [records // part.divisor for records in self._chosen.records]
        with self._queries.topics(sizes, part.codec, part.value) as topics:
            for work in part.works:
                name = work + (f", {part.codec}" if part.codec != "none" else "")
                name += f", {part.value} B" if part.value != 100 else ""
                cases = self._queries.works(work, topics, part.codec)
                self._warm_up(cases[case] for case in cases if case[1] == min(sizes))
                rounds = min(self._chosen.rounds, SLOW.get(work, self._chosen.rounds))
                found = in_turns(rounds, 1, cases, self._queries.server.process.pid)
                rows += rows_of(name, found)
                for row in rows[-len(cases) :]:
                    print(row.work, row.records, row.contender, row.processor, row.elapsed, flush=True)
                self._queries.spark.catalog.clearCache()
        return rows

    def _warm_up(self, works: Iterable[Callable[[], None]]) -> None:
        rounds = 0 if self._chosen.quick else WARM_UP_ROUNDS if self._is_warm else FIRST_WARM_UP_ROUNDS
        chosen = list(works)
        for _ in range(rounds):
            for work in chosen:
                work()
        self._is_warm = True

    def _stages(self) -> dict[str, dict[str, float]]:
        found = {}
        for codec, value in (("none", 100), ("lz4", 100), ("none", 1024)):
            records = min(self._chosen.records[0], STAGE_RECORDS) * 100 // value
            with self._queries.topics([records], codec, value) as topics:
                found[f"{codec}, {value} B"] = stages(self._queries.server.log_dir, topics[records])
        print(found)
        return found


if __name__ == "__main__":
    main()
