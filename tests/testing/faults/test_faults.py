"""The rules of a broker: their text, their counts, and their installation."""

from __future__ import annotations

import pytest

from odradek.broker.broker import Broker
from odradek.broker.handlers import produce as produce_handler
from odradek.broker.testing.faults import Faults
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from tests.handlers.requests import batch, create, produce
from tests.wire import Wire

VERSION = 2


async def decisions(faults: Faults, wire: Wire, seed: int) -> list[int]:
    rule = faults.fail("ApiVersions", "UNKNOWN_SERVER_ERROR", probability=0.5, seed=seed)
    found = [(await wire.ask(ApiVersionsRequest(), VERSION)).error_code for _ in range(32)]
    assert rule.hits == sum(code != ErrorCode.NONE for code in found)
    rule.remove()
    return found


async def test_chance_is_reproducible_by_its_seed(faults: Faults, wire: Wire) -> None:
    first = await decisions(faults, wire, 1)
    assert {ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR} == set(first)
    assert await decisions(faults, wire, 1) == first
    assert await decisions(faults, wire, 2) != first


async def test_a_rule_is_for_one_client(faults: Faults, wire: Wire, other: Wire) -> None:
    rule = faults.fail("ApiVersions", "UNKNOWN_SERVER_ERROR", client_id="other")
    assert (await wire.ask(ApiVersionsRequest(), VERSION)).error_code == ErrorCode.NONE
    assert (await other.ask(ApiVersionsRequest(), VERSION)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert rule.hits == 1


async def test_a_rule_reads_as_a_sentence(faults: Faults, wire: Wire) -> None:
    rule = faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders", partition=0, times=2)
    assert str(rule) == "fail Produce with NOT_LEADER_OR_FOLLOWER (topic=orders, partition=0, times=2): 0 hits"
    assert repr(rule) == f"<{rule}>"
    assert [
        str(made)
        for made in (
            faults.delay("Fetch", 0.5, client_id="c"),
            faults.drop("Produce", "after", probability=0.5, seed=7),
            faults.pause(),
            faults.pause("Fetch"),
            faults.throttle("Produce", 100),
            faults.disk_full(4096, "orders-0"),
            faults.io_error("*.log", on="sync", nth=3),
            faults.slow_disk(5),
            faults.slow_disk(5, on="read"),
        )
    ] == [
        "delay Fetch by 0.5 s (client_id=c): 0 hits",
        "drop Produce after it is executed (probability=0.5, seed=7): 0 hits",
        "pause all requests: 0 hits",
        "pause Fetch: 0 hits",
        "throttle Produce by 100 ms: 0 hits",
        "fill the disk after 4096 bytes (path=orders-0): 0 hits",
        "fail sync number 3 with EIO (path=*.log): 0 hits",
        "slow down every operation by 5 ms: 0 hits",
        "slow down every read by 5 ms: 0 hits",
    ]
    faults.clear()

    failing = faults.fail("ApiVersions", "UNKNOWN_SERVER_ERROR")
    await wire.ask(ApiVersionsRequest(), VERSION)
    assert str(failing) == "fail ApiVersions with UNKNOWN_SERVER_ERROR: 1 hit"


async def test_unused_rules_are_reported_also_if_they_were_removed(faults: Faults, wire: Wire) -> None:
    hit = faults.fail("ApiVersions", "UNKNOWN_SERVER_ERROR")
    await wire.ask(ApiVersionsRequest(), VERSION)
    kept, removed = faults.delay("Fetch", 1), faults.drop("Fetch")
    optional = faults.disk_full(1 << 40, optional=True)
    removed.remove()

    assert faults.unused() == [kept, removed]
    assert faults.rules == (hit, kept, optional)
    faults.clear()
    assert not faults.unused()
    assert not faults.rules


async def test_a_broker_without_rules_runs_the_handlers_and_files_themselves(
    broker: Broker, faults: Faults, wire: Wire
) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(b"v"))
    route = broker.routes.by_version[0, 9]
    [directory] = broker.log_dirs.directories
    files = directory.resources.descriptors.files
    assert route.handle is produce_handler.handle

    faults.fail("Fetch", "NOT_LEADER_OR_FOLLOWER")
    assert route.handle is produce_handler.handle  # another API's rule costs a Produce nothing

    rules = [faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER"), faults.slow_disk(0)]
    assert route.handle is not produce_handler.handle
    assert vars(files)
    for rule in rules:
        rule.remove()
    assert route.handle is produce_handler.handle
    assert not vars(files)


async def test_a_rule_for_throttles_concerns_the_next_request_of_any_api(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(b"v"))
    faults = Faults(broker)
    faults.throttle("Fetch", 1)
    assert broker.routes.by_version[0, 9].handle is not produce_handler.handle
    faults.clear()
    assert broker.routes.by_version[0, 9].handle is produce_handler.handle


async def test_rules_are_made_for_a_stopped_broker_and_hold_in_each_run() -> None:
    stopped = Broker()
    faults = Faults(stopped)
    rule = faults.fail("ApiVersions", "UNKNOWN_SERVER_ERROR")
    slow = faults.slow_disk(0)
    for _ in range(2):
        await stopped.start()
        async with Wire("127.0.0.1", stopped.port) as wire:
            hits = rule.hits
            assert (await wire.ask(ApiVersionsRequest(), VERSION)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
            assert rule.hits == hits + 1
        await stopped.stop()
    assert slow.hits  # the clean stop has written checkpoints
    await stopped.close()


@pytest.mark.parametrize("error", [ErrorCode.NOT_COORDINATOR, "NOT_COORDINATOR"])
async def test_an_error_is_given_by_name_or_as_a_member(faults: Faults, wire: Wire, error: str | ErrorCode) -> None:
    faults.fail("ApiVersions", error)
    assert (await wire.ask(ApiVersionsRequest(), VERSION)).error_code == ErrorCode.NOT_COORDINATOR
