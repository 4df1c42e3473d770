"""A store that has lost the record of the cluster."""

from __future__ import annotations

import pytest

from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.registration import RegistrationError
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import Delete, StoreError
from odradek.broker.metadata_commands.create_cluster import create_cluster
from odradek.broker.storage.log_dir import LogDirRefusedError
from tests.handlers.requests import fetch, values_in
from tests.metadata_commands.conftest import CLOCK, Stopped, run_with
from tests.wire import Wire

KEYS = Keys()


async def _create(stopped: Stopped, *, adopts_topics: bool = False, is_confirmed: bool = True) -> list[str]:
    said: list[str] = []
    await create_cluster(
        stopped.config, stopped.store, CLOCK, said.append, adopts_topics=adopts_topics, is_confirmed=is_confirmed
    )
    return said


async def test_an_emptied_store_takes_the_cluster_again(stopped: Stopped) -> None:
    await run_with(stopped, "t")
    stopped.store = InMemoryStore()
    with pytest.raises(RegistrationError, match="odradek metadata create-cluster"):
        async with stopped.broker():
            pass

    said = "\n".join(await _create(stopped))

    assert "1 log (t-0) of topics that it does not have" in said
    async with stopped.broker() as broker:
        assert broker.services.metadata.image.topics == {}
    assert stopped.stray_or_not() == ["t-0"]


async def test_topics_may_be_made_of_the_logs(stopped: Stopped) -> None:
    await run_with(stopped, "t", "u")
    async with stopped.broker() as broker:
        topic_id = broker.services.metadata.image.topics["t"].topic_id
    stopped.store = InMemoryStore()

    await _create(stopped, adopts_topics=True)

    async with stopped.broker() as broker, Wire("127.0.0.1", broker.port) as wire:
        assert values_in(await fetch(wire, "u")) == [b"u"]
        assert broker.services.metadata.image.topics["t"].topic_id == topic_id
    assert (await stopped.store.range(KEYS.adopting))[0] == []


async def test_only_the_named_broker_makes_topics(stopped: Stopped) -> None:
    await run_with(stopped, "t")
    stopped.store = InMemoryStore()
    await _create(stopped, adopts_topics=True)
    other = Stopped(stopped.log_dir.with_name("other"), stopped.store)
    other.properties["node.id"] = "2"

    async with other.broker() as broker:
        assert broker.services.metadata.image.topics == {}

    assert len((await stopped.store.range(KEYS.adopting))[0]) == 1


async def test_topics_that_the_store_has_are_served_again(stopped: Stopped) -> None:
    """Only the record was deleted."""
    await run_with(stopped, "t")
    await stopped.store.txn((), (Delete(KEYS.cluster),))

    said = "\n".join(await _create(stopped))

    assert "1 topic (t)" in said
    assert "no log of topics that it does not have" in said
    async with stopped.broker() as broker, Wire("127.0.0.1", broker.port) as wire:
        assert values_in(await fetch(wire, "t")) == [b"t"]


async def test_without_confirmation_nothing_changes(stopped: Stopped) -> None:
    await run_with(stopped, "t")
    stopped.store = InMemoryStore()

    assert await _create(stopped, is_confirmed=False)

    assert await stopped.dump() == []


async def test_a_store_with_the_cluster_is_left_alone(stopped: Stopped) -> None:
    await run_with(stopped, "t")
    before = await stopped.dump()

    [said] = await _create(stopped)

    assert said.endswith("already: there is nothing to do")
    assert await stopped.dump() == before


async def test_a_store_of_another_cluster_is_refused(stopped: Stopped) -> None:
    await run_with(stopped, "t")
    stopped.store = InMemoryStore()
    async with Stopped(stopped.log_dir.with_name("other"), stopped.store).broker():
        pass

    with pytest.raises(StoreError, match=r"has cluster .* of cluster"):
        await _create(stopped)


async def test_new_directories_need_no_record(stopped: Stopped) -> None:
    with pytest.raises(StoreError, match="are new"):
        await _create(stopped)


async def test_the_broker_must_be_stopped(stopped: Stopped) -> None:
    async with stopped.broker():
        with pytest.raises(LogDirRefusedError, match="stop it first"):
            await _create(stopped)
