"""Run the contenders in turns, and measure the time and the processor time of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from benchmarks.pipeline.usage import processor_seconds

Case = tuple[str, int]  # a contender, and the number of records


@dataclass
class Samples:
    """The rounds of one case: elapsed seconds, and processor seconds by kind of process."""

    elapsed: list[float] = field(default_factory=list)
    processor: list[dict[str, float]] = field(default_factory=list)


def in_turns(rounds: int, warm_up: int, works: Mapping[Case, Callable[[], None]], broker: int) -> dict[Case, Samples]:
    """Run every work once a round; return the rounds after the first `warm_up` ones."""
    found = {case: Samples() for case in works}
    for round_ in range(-warm_up, rounds):
        for case, work in works.items():
            before, start = processor_seconds(broker), time.perf_counter()
            work()
            elapsed = time.perf_counter() - start
            after = processor_seconds(broker)
            if round_ >= 0:
                found[case].elapsed.append(elapsed)
                found[case].processor.append({kind: after[kind] - before[kind] for kind in after})
    return found
