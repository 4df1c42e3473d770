"""The programs of docs/migrating.md run, and those of a pair print the same."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.clients import Outgoing
from tests.peers.clients.confluent import Confluent

PAGE = Path(__file__).parents[2] / "docs" / "migrating.md"


def pairs() -> Iterator[pytest.ParameterSet]:
    """A pair of programs for each heading that has any: with the other client, and with ours."""
    for chapter in re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        client, *sections = chapter.split("\n### ")
        for section in sections:
            if programs := re.findall(r"```python\n(.*?)```", section, re.DOTALL):
                yield pytest.param(*programs, id=f"{client.splitlines()[0]}, {section.splitlines()[0]}")


def run(program: str, **names: str) -> str:
    for old, new in names.items():
        program = program.replace(f'"{old}"', f'"{new}"')
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_page_has_a_pair_for_producing_and_for_consuming_with_each_client() -> None:
    assert [each.id for each in pairs()] == [
        "From aiokafka, Produce",
        "From aiokafka, Consume in a group",
        "From confluent-kafka, Produce",
        "From confluent-kafka, Consume in a group",
        "From confluent-kafka, Administer",
    ]


@pytest.mark.parametrize(("theirs", "ours"), list(pairs()))
def test_both_programs_of_a_pair_print_the_same(theirs: str, ours: str, bootstrap: str, topic: str) -> None:
    Confluent().produce(bootstrap, topic, [Outgoing(b"customer 7", b"three socks")])
    printed = [
        run(
            program.replace("localhost:9092", bootstrap),
            orders=topic,
            billing=f"{topic}-{number}",
            invoices=f"{topic}-new-{number}",
        )
        for number, program in enumerate((theirs, ours))
    ]
    assert printed[0].replace("-new-0", "-new-1") == printed[1]
    assert printed[1].strip()
