"""A coordinator's partition whose leader epoch begins while no file can be opened: it is loaded afterwards."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.metadata.administration.topic_names import CONSUMER_OFFSETS
from odradek.broker.startup.machine import Machine
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from tests.handlers.cluster import OTHER, SELF, publish
from tests.handlers.group_members import GroupMember, find_coordinator
from tests.handlers.requests import create
from tests.storage.test_transient_errors import ShortFiles
from tests.wire import Wire


class FailingFiles(ShortFiles):
    """All operations fail from `is_failing` on, until it is false again."""

    is_failing = False

    def _step(self) -> bool:
        self.operations += 1
        return self.is_failing


async def error_of(wire: Wire) -> ErrorCode:
    """The error of a request for the offsets of `g`."""
    found = await wire.ask(OffsetFetchRequest("g", [OffsetFetchRequestTopic("t", [0])]), 7)
    return ErrorCode(found.error_code)


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENOMEM], ids=["EMFILE", "ENOMEM"])
async def test_an_idle_coordinator_is_loaded_after_a_transient_error(tmp_path: Path, code: int) -> None:
    files = FailingFiles(code)
    properties = {"log.dirs": str(tmp_path), "offsets.topic.num.partitions": "1"}
    async with (
        Broker(properties, machine=Machine(new_files=lambda: files)) as broker,
        Wire("127.0.0.1", broker.port) as wire,
    ):
        await create(wire, "t")
        await find_coordinator(wire, "g")
        assert await GroupMember(wire, "g").commit("t", 7) == ErrorCode.NONE
        publish(broker, CONSUMER_OFFSETS, leader=OTHER)
        while await error_of(wire) is not ErrorCode.NOT_COORDINATOR:
            pass

        files.is_failing, files.operations = True, 0
        publish(broker, CONSUMER_OFFSETS, leader=SELF)
        async with asyncio.timeout(20):
            while files.operations < 2:  # noqa: ASYNC110 - the first attempt, and one more
                await asyncio.sleep(0.01)
        assert await error_of(wire) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        files.is_failing = False

        async with asyncio.timeout(20):
            while await error_of(wire) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                pass
        assert await GroupMember(wire, "g").committed("t") == 7
        assert broker.log_dirs.first.failure.error is None
