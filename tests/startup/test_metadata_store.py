from __future__ import annotations

import asyncio
import logging

import pytest

from odradek.broker.config import BrokerConfig
from odradek.broker.metadata.cluster_record import DirectoriesState, begin_cluster, find_cluster
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.registration import RegistrationError
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import Put, StoreAccessError, StoreUnreachableError
from odradek.broker.metadata.values import ClusterRecord, KnownBroker, encode
from odradek.broker.randomness import SeededRandomness
from odradek.broker.startup.metadata_store import Readiness, reach, session_seconds, shared_cluster_id
from odradek.broker.testing.clock import ManualClock
from tests.client.virtual_time import simulated

KEYS = Keys()
NEW = DirectoriesState(None)


def _config(**properties: str) -> BrokerConfig:
    return BrokerConfig.load(None, {name.replace("_", "."): value for name, value in properties.items()})


@pytest.mark.parametrize(("timeout_ms", "seconds"), [("9000", 8), ("3000", 2), ("2000", 2), ("4999", 3)])
def test_a_session_ends_within_the_timeout(timeout_ms: str, seconds: int) -> None:
    assert session_seconds(_config(broker_session_timeout_ms=timeout_ms)) == seconds


class _LateStore(InMemoryStore):
    """Cannot be reached at first; the clock advances by a second with each attempt."""

    def __init__(self, clock: ManualClock, attempts: int) -> None:
        super().__init__()
        self._clock = clock
        self._attempts = attempts

    async def check(self, prefix: bytes) -> None:
        await super().check(prefix)
        if self._attempts:
            self._attempts -= 1
            self._clock.advance(1000)
            raise StoreUnreachableError("no server answered")


@simulated
async def test_a_store_that_cannot_be_reached_is_awaited(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    readiness = Readiness()

    with caplog.at_level(logging.WARNING):
        reaching = asyncio.ensure_future(reach(_LateStore(clock, 25), KEYS, clock, readiness))
        await asyncio.sleep(1)
        assert readiness.reason == "the metadata store cannot be reached: no server answered"
        await reaching

    assert readiness.reason == "it is starting"
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 3, "one every ten seconds"
    assert "waiting for the metadata store" in lines[0]


@simulated
async def test_a_store_that_refuses_access_is_not_awaited() -> None:
    class Forbidding(InMemoryStore):
        async def check(self, prefix: bytes) -> None:
            raise StoreAccessError(f"no permission for {prefix!r}")

    with pytest.raises(StoreAccessError):
        await reach(Forbidding(), KEYS, ManualClock(), Readiness())


async def test_the_first_broker_with_new_directories_begins_the_cluster() -> None:
    store, clock = InMemoryStore(), ManualClock()

    ids = await asyncio.gather(
        *(shared_cluster_id(_config(), store, NEW, clock, SeededRandomness(seed)) for seed in range(3))
    )

    record = await find_cluster(store, KEYS)
    assert record is not None
    assert set(ids) == {record.id}
    assert record.created == clock.time_ms()
    of_it = DirectoriesState(record.id, 1)
    assert await shared_cluster_id(_config(), store, of_it, clock, SeededRandomness(9)) == record.id
    assert not [kv for kv in (await store.range(KEYS.prefix))[0] if kv.key == KEYS.adopting]


async def test_a_cluster_id_may_be_configured() -> None:
    store = InMemoryStore()
    config = _config(cluster_id="MkU3OEVBNTcwNTJENDM2Qk")

    assert await shared_cluster_id(config, store, NEW, ManualClock(), SeededRandomness(1)) == "MkU3OEVBNTcwNTJENDM2Qk"


async def test_a_store_without_a_cluster_takes_no_broker_that_has_one() -> None:
    """It may have been emptied: its topics would be unknown, and the logs in the directory strays."""
    store = InMemoryStore()

    with pytest.raises(
        RegistrationError, match=r"no cluster under /odradek/v1.*of cluster old.*restore a backup"
    ) as no:
        await shared_cluster_id(_config(), store, DirectoriesState("old"), ManualClock(), SeededRandomness(1))

    assert "`odradek metadata create-cluster`" in str(no.value)
    assert await store.range(b"") == ([], 0)


async def test_a_store_that_is_older_than_the_directories_takes_no_broker() -> None:
    """A restored backup: it would give out epochs again that the directories have seen already."""
    store = InMemoryStore()
    cluster_id = await shared_cluster_id(_config(), store, NEW, ManualClock(), SeededRandomness(1))
    kvs = await store.range(b"")

    with pytest.raises(RegistrationError, match=r"at revision 1, .* have seen 2: .*older") as refused:
        await shared_cluster_id(_config(), store, DirectoriesState(cluster_id, 2), ManualClock(), SeededRandomness(1))

    assert "`odradek metadata accept-backup`" in str(refused.value)
    assert await store.range(b"") == kvs


@pytest.mark.parametrize(("stored", "is_refused"), [(6, True), (7, False), (8, False)])
async def test_a_store_that_has_reached_the_revision_again_is_found_by_the_epoch_of_the_broker(
    stored: int, is_refused: bool
) -> None:
    """A restored store counts on: sessions expire in it, others write to it."""
    store, config = InMemoryStore(), _config(node_id="1")
    cluster_id = await shared_cluster_id(config, store, NEW, ManualClock(), SeededRandomness(1))
    await store.txn((), (Put(KEYS.broker_known(1), encode(KnownBroker(stored, "", ""))),))
    joining = shared_cluster_id(config, store, DirectoriesState(cluster_id, 2, 7), ManualClock(), SeededRandomness(1))

    if is_refused:
        with pytest.raises(RegistrationError, match=r"has epoch 6 of this broker, .* had 7: it is an older copy"):
            await joining
    else:
        assert await joining == cluster_id


async def test_a_cluster_of_a_later_version_takes_no_broker() -> None:
    store = InMemoryStore()
    await begin_cluster(store, KEYS, ClusterRecord("later", 0, feature_level=2), adopts=False)

    with pytest.raises(RegistrationError, match="needs feature level 2, this version has 1"):
        await shared_cluster_id(_config(), store, NEW, ManualClock(), SeededRandomness(1))


async def test_a_store_of_another_cluster_takes_no_broker() -> None:
    store = InMemoryStore()
    cluster_id = await shared_cluster_id(_config(), store, NEW, ManualClock(), SeededRandomness(1))

    with pytest.raises(RegistrationError, match=rf"has cluster {cluster_id}, .* of cluster another") as refused:
        await shared_cluster_id(_config(), store, DirectoriesState("another"), ManualClock(), SeededRandomness(1))

    assert "`odradek metadata show`" in str(refused.value)
