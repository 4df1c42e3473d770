"""Full collections visit what is new, and everything once the exempt objects have doubled.

The collector belongs to the process, so each test runs in one of its own.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.process

_BEFORE = """
import gc, weakref
from odradek.broker.garbage_collection import GarbageCollection

class Node:
    def __init__(self):
        self.me = self

def tracked():
    return len(gc.get_objects())

collection = GarbageCollection(spare=1000)
gc.disable()
gc.collect()
collection.start()
at_start = gc.get_freeze_count()
"""


def run(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _BEFORE + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_what_was_found_alive_is_not_visited_again() -> None:
    run("""
        kept = [Node() for _ in range(5000)]
        gc.collect()
        assert gc.get_freeze_count() >= at_start + 5000
        assert tracked() < 1000
        del kept[:2500]
        gc.collect()
        assert gc.get_freeze_count() > at_start + 5000  # cycles stay for now
    """)


def test_younger_collections_exempt_nothing() -> None:
    run("""
        kept = [Node() for _ in range(5000)]
        gc.collect(1)
        assert gc.get_freeze_count() <= at_start
    """)


def test_exempt_objects_are_freed_when_nothing_refers_to_them() -> None:
    run("""
        kept = [[] for _ in range(5000)]
        gc.collect()
        del kept
        assert gc.get_freeze_count() < at_start + 100
    """)


def test_cycles_are_found_when_the_exempt_objects_have_doubled() -> None:
    run("""
        lost = Node()
        reference = weakref.ref(lost)
        gc.collect()
        del lost
        gc.collect()
        assert reference() is not None
        kept = [Node() for _ in range(2 * at_start + 1000)]
        gc.collect()  # finds that there are too many
        assert gc.get_freeze_count() == 0
        gc.collect()  # visits all
        assert reference() is None
        assert gc.get_freeze_count() > 2 * at_start
        gc.collect()
        assert gc.get_freeze_count() > 2 * at_start
    """)


def test_nothing_is_exempt_after_the_end() -> None:
    run("""
        collection.stop()
        kept = [Node() for _ in range(5000)]
        gc.collect()
        assert gc.get_freeze_count() <= at_start
    """)
