"""A store that was restored from a backup, which is older than the log directories."""

from __future__ import annotations

import pytest

from odradek.broker.metadata.administration.topics import delete_topic
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.registration import RegistrationError
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import StoreError
from odradek.broker.metadata.values import decode_known, decode_partition_state
from odradek.broker.metadata_commands.accept_backup import accept_backup
from odradek.broker.metadata_commands.directories import state_of
from odradek.broker.storage.log_dir import LogDirRefusedError
from odradek.broker.storage.names import CLEAN_SHUTDOWN, METADATA_REVISION
from tests.handlers.requests import fetch, values_in
from tests.metadata_commands.conftest import CLOCK, Stopped, restored, run_with
from tests.wire import Wire

KEYS = Keys()


async def _accept(stopped: Stopped, *, is_confirmed: bool = True) -> list[str]:
    said: list[str] = []
    await accept_backup(stopped.config, stopped.store, CLOCK, said.append, is_confirmed=is_confirmed)
    return said


async def _back_up_and_go_on(stopped: Stopped) -> None:
    """Back up a store with the topics `kept` and `dropped`; then create one topic, delete another, restore."""
    await run_with(stopped, "kept", "dropped")
    kvs, revision = await stopped.store.range(b"")
    await run_with(stopped, "later")
    async with stopped.broker() as broker:
        await delete_topic(broker.services.metadata, name="dropped")
        await broker.services.partitions.settled()
    stopped.store = await restored(kvs, revision)


async def test_a_backup_is_refused_until_it_is_accepted(stopped: Stopped) -> None:
    await _back_up_and_go_on(stopped)
    logs = stopped.logs()
    with pytest.raises(RegistrationError, match=r"older.*odradek metadata accept-backup"):
        async with stopped.broker():
            pass

    said = "\n".join(await _accept(stopped))

    assert "1 log (later-0) here of topics that the store does not have" in said
    assert "1 partition (dropped-0) that begin empty here" in said
    assert stopped.logs() == logs, "nothing is deleted, and nothing renamed"
    async with stopped.broker() as broker, Wire("127.0.0.1", broker.port) as wire:
        assert values_in(await fetch(wire, "kept")) == [b"kept"]
        assert values_in(await fetch(wire, "dropped")) == []
    assert "later-0" in stopped.stray_or_not()


async def test_without_confirmation_nothing_changes(stopped: Stopped) -> None:
    await _back_up_and_go_on(stopped)
    before = await stopped.dump(), (stopped.log_dir / METADATA_REVISION).read_bytes()

    assert await _accept(stopped, is_confirmed=False)

    assert (await stopped.dump(), (stopped.log_dir / METADATA_REVISION).read_bytes()) == before


async def test_a_leader_epoch_is_raised_to_that_of_the_log(stopped: Stopped) -> None:
    """Else two leaders would write different batches under one epoch."""
    await run_with(stopped, "t")
    kvs, revision = await stopped.store.range(b"")
    async with stopped.broker() as broker:
        topic_id = broker.services.metadata.image.topics["t"].topic_id
    key = KEYS.partition_state(topic_id, 0)
    (stopped.log_dir / "t-0" / "leader-epoch-checkpoint").write_text("0\n1\n7 0\n")
    stopped.store = await restored(kvs, revision)

    said = "\n".join(await _accept(stopped))

    assert "1 partition (t-0) whose leader epoch is raised" in said
    [kv] = (await stopped.store.range(key))[0]
    state = decode_partition_state(kv.value)
    assert (state.leader, state.leader_epoch, list(state.isr)) == (-1, 7, [1])
    async with stopped.broker() as broker:
        assert broker.services.metadata.image.topics["t"].partitions[0].leader_epoch == 8


async def test_an_unclean_stop_counts_whatever_the_backup_has(stopped: Stopped) -> None:
    await _back_up_and_go_on(stopped)
    (stopped.log_dir / CLEAN_SHUTDOWN).unlink()

    await _accept(stopped)

    [kv] = (await stopped.store.range(KEYS.broker_known(1)))[0]
    known = decode_known(kv.value)
    assert (known.clean_shutdown_epoch, known.boot_id) == (0, "")


async def test_a_store_that_is_not_older_is_left_alone(stopped: Stopped) -> None:
    await run_with(stopped, "t")
    before = await stopped.dump()

    said = await _accept(stopped)

    assert said[-1] == "The store is not older: there is nothing to do."
    assert await stopped.dump() == before


async def test_the_broker_must_be_stopped(stopped: Stopped) -> None:
    async with stopped.broker():
        with pytest.raises(LogDirRefusedError, match="stop it first"):
            await _accept(stopped)


async def test_a_store_of_another_cluster_cannot_be_accepted(stopped: Stopped) -> None:
    await run_with(stopped, "t")
    stopped.store = InMemoryStore()

    with pytest.raises(StoreError, match="has no cluster under /odradek/v1"):
        await _accept(stopped)


async def test_a_second_attempt_after_an_interrupted_one_succeeds(stopped: Stopped) -> None:
    """The transactions were applied, but the directories had not taken the revision."""
    await _back_up_and_go_on(stopped)
    seen = (stopped.log_dir / METADATA_REVISION).read_bytes()
    await _accept(stopped)
    (stopped.log_dir / METADATA_REVISION).write_bytes(seen)

    await _accept(stopped)

    assert state_of(stopped.config, CLOCK).revision == (await stopped.store.range(b""))[1]
