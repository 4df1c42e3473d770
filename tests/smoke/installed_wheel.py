"""The smoke test of an installed wheel, for an environment with the wheel, its requirements and pytest.

It is not in the suite, has no conftest, and imports only what is installed: cibuildwheel runs it in each environment of
its own (pyproject.toml has the command), tests/test_wheel.py in an empty one.
"""

import asyncio
from importlib import import_module
from importlib.metadata import distribution

from odradek import Consumer, Producer


async def send_and_read(bootstrap):
    async with Producer(bootstrap) as producer:
        await producer.send_and_wait("orders", b"three socks", b"customer 7")
    async with Consumer(bootstrap, group_id="readers", auto_offset_reset="earliest") as consumer:
        await consumer.subscribe(["orders"])
        while not (records := await consumer.poll()):
            pass
        return [(record.key, record.value) for record in records]


def test_a_record_comes_back(kafka_broker):
    assert asyncio.run(send_and_read(kafka_broker.bootstrap)) == [(b"customer 7", b"three socks")]


def test_the_plugin_is_found_by_its_entry_point(kafka):
    kafka.topic("orders")
    state = kafka.snapshot()
    kafka.produce("orders", [b"three socks", (b"customer 7", b"four hats")])
    assert [record.value for record in kafka.wait_for_records("orders", 2)] == [b"three socks", b"four hats"]
    kafka.restore(state)
    assert kafka.records("orders") == []


def test_the_modules_are_compiled_if_the_wheel_is_for_one_platform():
    is_pure = "Root-Is-Purelib: true" in distribution("odradek").read_text("WHEEL")
    assert import_module("odradek.broker.storage.log").__file__.endswith(".py" if is_pure else ".so")
