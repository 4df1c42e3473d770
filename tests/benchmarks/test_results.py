"""The pages that the benchmark makes of its measurements."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.side_by_side import clients, readme, report
from benchmarks.side_by_side.client_work import WORK
from benchmarks.side_by_side.results import BASELINE, ODRADEK, Row, Run, Sample

ROOT = Path(__file__).parents[2]


def row(theirs: list[float], ours: list[float], figure: str = "rate", goal: float | None = None) -> Row:
    def samples(values: list[float]) -> list[Sample]:
        return [{figure: value} for value in values]

    goals = {} if goal is None else {figure: goal}
    return Row("raw", "produce 100 B", {BASELINE: samples(theirs), ODRADEK: samples(ours)}, goals)


def run(*rows: Row) -> Run:
    return Run("2026-01-01", "Apache Kafka", {"processor": "two cores"}, {"Odradek": "1"}, 3, 1, list(rows))


def test_a_ratio_is_of_the_medians() -> None:
    assert row([10, 20, 900], [30, 40, 1]).ratio("rate") == 1.5


def test_a_goal_is_a_floor_of_rates_and_a_ceiling_of_times() -> None:
    assert row([10], [12], goal=1.2).reaches("rate")
    assert not row([10], [11], goal=1.2).reaches("rate")
    assert row([10], [8], "p99_us", goal=0.8).reaches("p99_us")
    assert not row([10], [9], "p99_us", goal=0.8).reaches("p99_us")
    assert row([10], [9]).reaches("rate") is None


def test_only_figures_that_both_sides_have_are_compared() -> None:
    lacking = row([1], [1])
    lacking.samples[ODRADEK][0]["cpu_us"] = 1
    assert lacking.figures() == ["rate"]


def test_only_rows_that_were_worse_in_every_round_are_worse() -> None:
    assert row([10, 11, 12], [7, 8, 9]).is_worse("rate", 0.1)
    assert not row([10, 11, 12], [7, 8, 11]).is_worse("rate", 0.1), "one round was as good"
    assert not row([10, 10, 10], [9.5, 9.5, 9.5]).is_worse("rate", 0.1), "within the tolerance"
    assert row([1, 2], [3, 4], "cpu_us").is_worse("cpu_us", 0.1)


def test_the_page_has_every_number_and_whether_goals_are_reached(tmp_path: Path) -> None:
    missed = row([100], [50], "p50_us", goal=0.4)
    page = "\n".join(report.page(run(row([1000, 2000, 3000], [4000, 4000, 4000], goal=1.2), missed), {}))
    assert "| produce 100 B | requests/s | 2,000 ± 50% | 4,000 ± 0% | 2.00 | ≥ 1.2 ✓ |" in page
    assert "| produce 100 B | µs, median | 100 ± 0% | 50 ± 0% | 0.50 | ≤ 0.4 ✗ |" in page


def client(name: str, **sample: float) -> Row:
    return Row("clients", f"{name}: work", {BASELINE: [dict(sample)], ODRADEK: [dict(sample)]})


def test_clients_are_compared_with_ours_on_each_broker() -> None:
    rows = (
        client("odradek", records_per_s=300, client_cpu_us=1, client_rss_mb=30),
        client("aiokafka", records_per_s=100, client_cpu_us=4, client_rss_mb=20),
        client("kafka-python", records_per_s=30, client_cpu_us=10, client_rss_mb=60),
    )
    page = "\n".join(report.page(run(*rows), {}))
    on_each = "3.00 (≥ 2 ✓) | 0.25 | 1.50 (≤ 1 ✗)"
    assert f"| work | aiokafka | {on_each} | {on_each} |" in page
    assert "| work | kafka-python | 10.00 | 0.10 | 0.50 | 10.00 | 0.10 | 0.50 |" in page


def test_clients_are_compared_by_latency_in_a_table_of_its_own() -> None:
    rows = client("odradek", p50_ms=1, p99_ms=2), client("aiokafka", p50_ms=2, p99_ms=2)
    page = list(report.page(run(*rows), {}))
    assert page[-3].endswith("median, on Odradek | 99 %, on Odradek |")
    assert page[-1] == "| work | aiokafka | 0.50 | 1.00 | 0.50 | 1.00 |"


def test_a_run_is_the_same_after_it_was_saved(tmp_path: Path) -> None:
    first = run(row([1], [2], goal=1.2))
    first.save(tmp_path / "results.json")
    assert Run.load(tmp_path / "results.json") == first


def measured(work: str, part: str, rate: float, when: str = "then") -> Row:
    samples = {BASELINE: [{"rate": 1.0}], ODRADEK: [{"rate": rate}]}
    return Row("raw", work, samples, part=part, measured=when)


def test_rows_that_were_not_measured_again_are_kept_from_an_earlier_run() -> None:
    now = run(measured("fetch", "fetch", 2))
    now.take_over(run(measured("fetch", "fetch", 1), measured("produce", "produce", 1)), finished=[])
    assert [(each.work, each.ratio("rate")) for each in now.rows] == [("fetch", 2), ("produce", 1)]


def test_a_part_that_was_measured_completely_keeps_no_older_rows() -> None:
    earlier = run(measured("a work that is gone", "fetch", 1), measured("produce", "produce", 1))
    now = run(measured("fetch", "fetch", 2))
    now.take_over(earlier, finished=[("raw", "fetch")])
    assert [each.work for each in now.rows] == ["fetch", "produce"]


def test_rows_of_another_machine_are_not_mixed_in() -> None:
    earlier = run(measured("produce", "produce", 1))
    earlier.machine = {"processor": "another"}
    now = run(measured("fetch", "fetch", 2))
    now.take_over(earlier, finished=[])
    assert [each.work for each in now.rows] == ["fetch"]


@pytest.mark.slow
def test_runs_of_parts_add_up_to_one_page(tmp_path: Path) -> None:
    order = [("raw", "produce"), ("raw", "fetch")]
    report.write(run(measured("fetch", "fetch", 2, when="yesterday")), tmp_path, [("raw", "fetch")], order)
    report.write(run(measured("produce", "produce", 3, when="today")), tmp_path, [("raw", "produce")], order)
    assert [each.work for each in Run.load(tmp_path / "results.json").rows] == ["produce", "fetch"]
    page = (tmp_path / "RESULTS.md").read_text()
    assert page.index("| produce | requests/s") < page.index("| fetch | requests/s")
    assert "| fetch | 1 | 1 | yesterday |" in page
    assert "| produce | 1 | 1 | today |" in page


def test_the_summary_has_the_ratios_with_their_goals() -> None:
    reached, without_goal = row([100], [150], goal=1.2), row([1], [1])
    assert list(report.summary([reached, without_goal]))[-1] == "| produce 100 B | 1.50 (≥ 1.2 ✓) |  |  |  |  |"


def test_two_zeros_are_equal() -> None:
    assert row([0], [0], "p99_ms", goal=1).reaches("p99_ms")
    assert not row([0], [1], "p99_ms", goal=1).reaches("p99_ms")


@pytest.mark.slow
def test_a_compiled_broker_has_separate_tables_after_the_others(tmp_path: Path) -> None:
    compiled, plain = measured("fetch", "fetch", 3), measured("fetch", "fetch", 2)
    compiled.group += report.COMPILED
    order = [("raw", "fetch")]
    report.write(run(compiled), tmp_path, [(compiled.group, "fetch")], order)
    report.write(run(plain), tmp_path, [("raw", "fetch")], order)
    assert [each.ratio("rate") for each in Run.load(tmp_path / "results.json").rows] == [2, 3]
    page = (tmp_path / "RESULTS.md").read_text()
    assert page.index("## The broker alone, under prepared requests\n") < page.index("(hottest modules compiled")


def test_there_is_a_program_for_each_client_that_is_measured() -> None:
    works = {(client, work) for client in clients.CLIENTS for work in ("produce", "consume", "iterate")}
    assert works | {("confluent", "produce"), ("confluent", "consume")} <= WORK.keys()


def marked_page(directory: Path) -> Path:
    page = directory / "README.md"
    page.write_text("before\n<!-- figures -->\nold\n<!-- end -->\nbetween\n<!-- ratios -->\n<!-- end -->\nbehind\n")
    return page


def started(theirs: float, ours: float, build: str = "") -> Row:
    samples: dict[str, list[Sample]] = {BASELINE: [{"seconds": theirs}], ODRADEK: [{"seconds": ours}]}
    return Row(f"life{build}", "start to first Metadata", samples)


def test_readme_leads_with_the_compiled_broker_and_has_plain_python_in_brackets(tmp_path: Path) -> None:
    lost, compiled = row([100], [50]), row([100], [70])
    lost.work = compiled.work = "produce 100 B, 1×1"
    compiled.group = lost.group + report.COMPILED
    page = marked_page(tmp_path)
    readme.renew(run(started(2, 0.25), started(3, 0.125, report.COMPILED), lost, compiled), page)
    assert "old" not in page.read_text()
    assert "| | Apache Kafka | Odradek |" in page.read_text()
    assert "| start to the first answer | 3 s | 0.125 s (0.25 s) |" in page.read_text()
    assert "| produce 100 B, 1×1 | 0.70 (0.50) |  |  |  |" in page.read_text()
    assert [line for line in page.read_text().splitlines() if line.isalpha()] == ["before", "between", "behind"]


def test_readme_marks_figures_that_were_measured_in_plain_python_only(tmp_path: Path) -> None:
    page = marked_page(tmp_path)
    readme.renew(run(started(2, 0.25)), page)
    assert "| | Apache Kafka | Odradek, plain Python |" in page.read_text()
    assert "| start to the first answer | 2 s | 0.25 s |" in page.read_text()


def test_readme_of_this_tree_has_the_numbers_of_its_results(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text((ROOT / "README.md").read_text())
    readme.renew(Run.load(ROOT / "benchmarks" / "results.json"), page)
    assert page.read_text() == (ROOT / "README.md").read_text()


def test_a_page_without_marks_is_an_error(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("nothing")
    with pytest.raises(ValueError, match="figures"):
        readme.renew(run(), page)


def test_worse_rows_are_printed_with_the_effect_of_chance(capsys: pytest.CaptureFixture[str]) -> None:
    assert report.print_regressions(run(row([10, 11, 12], [5, 6, 7]), row([1], [1])), 0.1) == 1
    printed = capsys.readouterr().out
    assert "by more than 10% in every round: produce 100 B: rate" in printed
    assert "Of 20 figures that are alike, one is worse in all of 3 rounds; there were 2." in printed
    assert report.print_regressions(run(row([1], [1])), 0.1) == 0
    assert not capsys.readouterr().out
