from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from odradek.broker.config import BrokerConfig
from odradek.broker.metadata.image import MetadataImage
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.registration import Installation
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.sqlite import FILE_NAME, SqliteStore
from odradek.broker.metadata.store.store import MetadataStore
from odradek.broker.metadata.values import Listener
from odradek.broker.randomness import SeededRandomness
from odradek.broker.testing.clock import ManualClock
from tests.effort import event_loops

CLUSTER_ID = "y2F3HaVmTSiLkCePmkxmmg"
LISTENERS = [Listener("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092)]


@pytest.hookimpl(optionalhook=True)
def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return event_loops()


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[MetadataStore]:
    opened: MetadataStore = (
        InMemoryStore() if request.param == "memory" else await SqliteStore.open(tmp_path / FILE_NAME)
    )
    yield opened
    await opened.close()


@pytest.fixture
async def shared() -> AsyncIterator[InMemoryStore]:
    """A store that several brokers share."""
    store = InMemoryStore()
    yield store
    await store.close()


Start = Callable[..., Awaitable[Metadata]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Start the metadata of a broker; `failures` collects the errors that it reports. All are stopped at the end."""
    started: list[Metadata] = []

    async def start(
        store: MetadataStore,
        node_id: int = 1,
        *,
        boot_id: str = "boot 1",
        log_dir_id: str = "",
        log_dir_ids: Sequence[str] = (),
        cluster_id: str = CLUSTER_ID,
        failures: list[BaseException] | None = None,
        session_seconds: float = 0.2,
        is_shared: bool = False,
        host: str = "",
        **overrides: str,
    ) -> Metadata:
        reported = failures if failures is not None else []
        metadata = Metadata(
            BrokerConfig.load(
                None, {"node.id": str(node_id)} | {name.replace("_", "."): text for name, text in overrides.items()}
            ),
            store,
            installation=Installation(
                cluster_id,
                tuple(log_dir_ids or [log_dir_id or f"log dir {node_id}"]),
                boot_id,
                software="0.0",
                host=host,
            ),
            clock=ManualClock(),
            randomness=SeededRandomness(node_id + len(started)),
            on_failure=lambda _what, error: reported.append(error),
            session_seconds=session_seconds,
            is_shared=is_shared,
        )
        started.append(metadata)
        await metadata.start(LISTENERS)
        return metadata

    yield start
    for metadata in reversed(started):
        await metadata.stop(clean=False)


async def until(metadata: Metadata, condition: Callable[[MetadataImage], bool], seconds: float = 10) -> MetadataImage:
    """Return the first image from now on for which `condition` holds."""
    reached: asyncio.Future[MetadataImage] = asyncio.get_running_loop().create_future()

    def check(image: MetadataImage) -> None:
        if not reached.done() and condition(image):
            reached.set_result(image)

    metadata.on_change(lambda change: check(change.after))
    check(metadata.image)
    return await asyncio.wait_for(reached, seconds)
