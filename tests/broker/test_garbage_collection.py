"""Full collections visit what is new, and everything once the exempt objects have doubled; deleted topics need none.

The collector belongs to the process, so each test of it runs in one of its own.
"""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import textwrap

import pytest

from odradek.broker.broker import Broker
from odradek.broker.storage.log import Log
from odradek.client import Admin, NewTopic

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


async def test_a_deleted_topic_is_freed_without_a_collection() -> None:
    async with Broker({"log.segment.delete.delay.ms": "0"}) as broker, Admin(broker.bootstrap) as admin:
        gc.collect()
        gc.disable()
        try:
            (await admin.create_topics([NewTopic("t", 20)])).values_or_raise()
            assert len(logs_of("t")) == 20
            (await admin.delete_topics(["t"])).values_or_raise()
            async with asyncio.timeout(20):
                while logs_of("t"):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        finally:
            gc.enable()


def logs_of(topic: str) -> list[Log]:
    return [each for each in gc.get_objects() if isinstance(each, Log) and each.topic == topic]
