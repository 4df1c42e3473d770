"""The bounds of answers: of one (`socket.response.max.bytes`), and of all under way (`queued.max.response.bytes`)."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.request.context import RequestContext
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from odradek.protocol.schema import Message
from tests.server.serving import (
    FETCH_VERSION,
    METADATA_VERSION,
    Client,
    Handlers,
    Serve,
    Serving,
    Slice,
    default_handlers,
    framed_request,
    lines_of,
)

MIB = 1 << 20
SMALL = 65_536


def _answer(size: int) -> MetadataResponse:
    """A response of a little more than `size` bytes."""
    return MetadataResponse(topics=[MetadataResponseTopic(name="n" * 1024) for _ in range(size // 1024)])


def _refusal(_: Any, code: ErrorCode, message: str) -> Message:
    return MetadataResponse(topics=[MetadataResponseTopic(error_code=code, name=message)])


def answering(size: int) -> Handlers:
    """Handlers that answer Metadata in steps with so many bytes, and ApiVersions as always."""

    def handle(context: RequestContext, request: MetadataRequest) -> Generator[None, None, MetadataResponse]:
        yield
        return _answer(size)

    handlers = default_handlers()
    handlers.on("Metadata", handle, _refusal)
    return handlers


def held(serving: Serving) -> int:
    return serving.server.dispatcher.answer_memory.held


async def ask(client: Client) -> MetadataResponse:
    response: MetadataResponse = await client.ask("Metadata", METADATA_VERSION, MetadataRequest())
    return response


async def leave_unread(serving: Serving) -> Client:
    """A client that has requested a large answer and reads nothing of it."""
    client = await serving.connect(receive_buffer=4096)
    before = held(serving)
    await client.send_request("Metadata", METADATA_VERSION, MetadataRequest())
    await serving.until(lambda: held(serving) > before)
    return client


async def test_an_answer_up_to_the_limit_is_sent(serve: Serve) -> None:
    serving = await serve(answering(MIB), socket_response_max_bytes=str(MIB + MIB // 2))
    assert len((await ask(await serving.connect())).topics) == 1024


async def test_an_answer_over_the_limit_is_refused(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    serving = await serve(answering(8 * MIB), socket_response_max_bytes=str(MIB))
    client = await serving.connect()
    for _ in range(2):
        [row] = (await ask(client)).topics
        assert (row.error_code, row.name) == (
            ErrorCode.INVALID_REQUEST,
            f"The answer would have more than {MIB} bytes (socket.response.max.bytes); request fewer items at a time.",
        )
    assert lines_of(caplog) == []


class CountedRows(list[MetadataResponseTopic]):
    """Rows that count how many of them were read."""

    taken = 0

    def __iter__(self) -> Iterator[MetadataResponseTopic]:
        for row in super().__iter__():
            self.taken += 1
            yield row


async def test_an_answer_over_the_limit_is_not_encoded_to_its_end(serve: Serve) -> None:
    rows = CountedRows(_answer(8 * MIB).topics)

    def handle(context: RequestContext, request: MetadataRequest) -> Generator[None, None, MetadataResponse]:
        yield
        return MetadataResponse(topics=rows)

    handlers = default_handlers()
    handlers.on("Metadata", handle, _refusal)
    serving = await serve(handlers, socket_response_max_bytes=str(MIB))
    await ask(await serving.connect())
    assert 1000 < rows.taken < 1200


async def test_the_answer_of_a_coroutine_has_the_same_limit(serve: Serve) -> None:
    async def handle() -> MetadataResponse:
        await asyncio.sleep(0)
        return _answer(2 * MIB)

    handlers = default_handlers()
    handlers.on("Metadata", lambda context, request: handle(), _refusal)
    serving = await serve(handlers, socket_response_max_bytes=str(MIB))
    [row] = (await ask(await serving.connect())).topics
    assert row.error_code == ErrorCode.INVALID_REQUEST


async def test_an_answer_without_steps_has_the_same_limit(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    handlers = default_handlers()
    handlers.on("Metadata", lambda context, request: _answer(2 * MIB), _refusal)
    serving = await serve(handlers, socket_response_max_bytes=str(MIB))
    client = await serving.connect()
    [row] = (await ask(client)).topics
    assert row.error_code == ErrorCode.INVALID_REQUEST
    assert lines_of(caplog) == []


async def test_the_answer_of_a_waiting_request_has_the_same_limit(serve: Serve) -> None:
    handlers = default_handlers()
    answered = asyncio.get_running_loop().create_future()
    handlers.on(
        "JoinGroup",
        lambda context, request: answered,
        lambda request, code, message: JoinGroupResponse(error_code=code),
    )
    serving = await serve(handlers, socket_response_max_bytes=str(MIB))
    client = await serving.connect()
    await client.send_request("JoinGroup", 9, JoinGroupRequest())
    members = [JoinGroupResponseMember(f"m{number}", metadata=bytes(1000)) for number in range(2000)]
    answered.set_result(JoinGroupResponse(members=members))
    _, response = await client.receive_response("JoinGroup", 9)
    assert (response.error_code, response.members) == (ErrorCode.INVALID_REQUEST, [])


async def test_a_refusal_is_sent_whatever_its_size(serve: Serve) -> None:
    handlers = answering(2 * MIB)
    handlers[3] = handlers[3]._replace(error_response=lambda request, code, message: _answer(3 * MIB))
    serving = await serve(handlers, socket_response_max_bytes=str(MIB))
    client = await serving.connect()
    for _ in range(2):
        assert len((await ask(client)).topics) == 3 * 1024
    await serving.until(lambda: held(serving) == 0)


def fetched(*records: Any) -> FetchResponse:
    rows = [PartitionData(index, records=each) for index, each in enumerate(records)]
    return FetchResponse(responses=[FetchableTopicResponse("t", partitions=rows)])


@pytest.mark.parametrize("in_steps", [False, True])
async def test_records_that_no_frame_can_carry_are_refused(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture, in_steps: bool
) -> None:
    (tmp_path / "log").touch()
    slices = [Slice(tmp_path / "log", 0, 1 << 30) for _ in range(2)]

    async def later() -> FetchResponse:
        return fetched(*slices)

    handlers = default_handlers()
    handlers.on("Fetch", lambda context, request: later() if in_steps else fetched(*slices))
    serving = await serve(handlers)
    client = await serving.connect()
    response = await client.ask("Fetch", FETCH_VERSION, FetchRequest())
    assert (response.error_code, response.responses) == (ErrorCode.INVALID_REQUEST, [])
    assert all(each.is_released for each in slices)
    assert lines_of(caplog) == []


async def test_a_fetch_counts_with_its_small_batches_only(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(bytes(8 * MIB))
    handlers = default_handlers()
    handlers.on("Fetch", lambda context, request: fetched(bytes(8 * MIB), Slice(tmp_path / "log", 0, 8 * MIB)))
    serving = await serve(handlers, socket_response_max_bytes=str(MIB))
    client = await serving.connect(receive_buffer=4096)
    await client.send_request("Fetch", FETCH_VERSION, FetchRequest())
    await serving.until(lambda: held(serving) > 0)
    assert 8 * MIB < held(serving) < 8 * MIB + SMALL
    await client.receive_response("Fetch", FETCH_VERSION)
    await serving.until(lambda: held(serving) == 0)


async def test_a_large_answer_follows_the_small_ones_before_it(serve: Serve) -> None:
    handlers = answering(MIB)
    serving = await serve(handlers)
    client = await serving.connect()
    small = framed_request("ApiVersions", 3, ApiVersionsRequest("test", "1"), 1)
    large = framed_request("Metadata", METADATA_VERSION, MetadataRequest(), 2)
    await client.send(small + large + small + large)
    for name, version, correlation_id in [("ApiVersions", 3, 1), ("Metadata", METADATA_VERSION, 2)] * 2:
        assert (await client.receive_response(name, version))[0] == correlation_id


async def test_an_answer_counts_until_it_is_read(serve: Serve) -> None:
    serving = await serve(answering(8 * MIB))
    client = await leave_unread(serving)
    assert 8 * MIB < held(serving) < 9 * MIB
    await client.receive_response("Metadata", METADATA_VERSION)
    await serving.until(lambda: held(serving) == 0)


async def test_an_answer_counts_until_its_connection_is_closed(serve: Serve) -> None:
    serving = await serve(answering(8 * MIB))
    client = await leave_unread(serving)
    client.reset()
    await serving.until(lambda: held(serving) == 0)


async def test_unread_answers_make_room_for_another(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    limit = 20 * MIB
    serving = await serve(answering(8 * MIB), queued_max_response_bytes=str(limit), max_connections_per_ip="1000")
    first = await leave_unread(serving)
    serving.clock.advance(1000)
    second = await leave_unread(serving)
    serving.clock.advance(1000)
    assert lines_of(caplog) == []

    for _ in range(3):
        assert len((await ask(await serving.connect())).topics) == 8 * 1024
        assert held(serving) <= limit

    assert ["its answer is unread" in line for line in lines_of(caplog)] == [True]
    with pytest.raises((EOFError, ConnectionResetError)):
        await first.receive_frame()
    await second.receive_response("Metadata", METADATA_VERSION)


async def test_without_an_unread_answer_a_larger_one_than_the_limit_is_refused(serve: Serve) -> None:
    serving = await serve(answering(8 * MIB), queued_max_response_bytes=str(MIB))
    [row] = (await ask(await serving.connect())).topics
    assert row.error_code == ErrorCode.REQUEST_TIMED_OUT  # clients repeat the request
    assert "queued.max.response.bytes" in (row.name or "")


async def test_small_answers_are_never_refused(serve: Serve) -> None:
    serving = await serve(answering(32 * 1024), queued_max_response_bytes="0", socket_response_max_bytes=str(SMALL))
    client = await serving.connect()
    for _ in range(3):
        assert len((await ask(client)).topics) == 32
    await serving.until(lambda: held(serving) == 0)


async def test_a_negative_limit_is_none(serve: Serve) -> None:
    serving = await serve(answering(2 * MIB), queued_max_response_bytes="-1")
    assert len((await ask(await serving.connect())).topics) == 2048
