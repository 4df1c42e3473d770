from __future__ import annotations

import asyncio
from itertools import chain, repeat

import pytest

from odradek.broker.metadata.administration.topics import create_topic
from odradek.broker.metadata.store.store import Put
from odradek.broker.metadata.time_limit import limited, time_limit
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.client.virtual_time import simulated
from tests.metadata.conftest import Start
from tests.metadata.uncertain import ANSWER, UNREACHABLE, UncertainStore


async def _elapsed_until_timeout() -> float:
    loop = asyncio.get_running_loop()
    begin = loop.time()
    with pytest.raises(KafkaError) as caught:
        async with limited():
            await asyncio.sleep(3600)
    assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT
    return loop.time() - begin


@simulated
async def test_all_transactions_of_a_request_share_its_limit() -> None:
    with time_limit(2000):
        await asyncio.sleep(0.5)
        assert await _elapsed_until_timeout() == pytest.approx(1.5)
        assert await _elapsed_until_timeout() == pytest.approx(0)


@simulated
async def test_without_a_limit_it_is_half_a_minute_for_each() -> None:
    assert await _elapsed_until_timeout() == pytest.approx(30)
    assert await _elapsed_until_timeout() == pytest.approx(30)


@simulated
async def test_a_limit_leaves_time_for_one_attempt() -> None:
    with time_limit(-1):
        assert await _elapsed_until_timeout() == pytest.approx(0.5)


@simulated
async def test_other_errors_pass() -> None:
    with pytest.raises(ValueError, match="unchanged"):
        async with limited():
            raise ValueError("unchanged")


async def test_a_store_that_cannot_be_reached_fails_requests_and_nothing_else(start: Start) -> None:
    failures: list[BaseException] = []
    store = UncertainStore(chain(repeat(ANSWER, 4), repeat(UNREACHABLE, 10**6)))
    metadata = await start(store, failures=failures)

    with time_limit(500), pytest.raises(KafkaError) as caught:
        await create_topic(metadata, "t")
    assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT
    store.script = iter(())

    assert (await create_topic(metadata, "t")).name == "t"
    assert (await metadata.commit((), (Put(metadata.keys.topic_config("x"), b"{}"),))).ok
    assert not failures
    await store.close()
