from __future__ import annotations

import asyncio
import struct
from pathlib import Path

from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from tests.server.serving import (
    FETCH_VERSION,
    METADATA_VERSION,
    PRODUCE_VERSION,
    Serve,
    Slice,
    default_handlers,
    framed_request,
)


def produce(records: bytes, acks: int = 1) -> ProduceRequest:
    return ProduceRequest(
        acks=acks, topic_data=[TopicProduceData(name="t", partition_data=[PartitionProduceData(0, records)])]
    )


def records_of(request: ProduceRequest) -> memoryview:
    records = request.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    return records


def produced(base_offset: int) -> ProduceResponse:
    return ProduceResponse(
        [TopicProduceResponse("t", partition_responses=[PartitionProduceResponse(0, 0, base_offset)])]
    )


async def test_a_request_is_answered(serve: Serve) -> None:
    client = await (await serve()).connect()
    assert (await client.ask("Metadata", METADATA_VERSION, MetadataRequest())).cluster_id == "test"


async def test_pipelined_requests_are_answered_in_order(serve: Serve) -> None:
    handlers, parked = default_handlers(), asyncio.get_running_loop().create_future()
    handlers.on("Fetch", lambda context, request: parked)
    serving = await serve(handlers)
    client = await serving.connect()
    for _ in range(3):
        await client.send_request("Metadata", METADATA_VERSION, MetadataRequest())
    await client.send_request("Fetch", FETCH_VERSION, FetchRequest())
    for _ in range(3):
        await client.send_request("Metadata", METADATA_VERSION, MetadataRequest())
    answered = [await client.receive_response("Metadata", METADATA_VERSION) for _ in range(3)]
    parked.set_result(FetchResponse(session_id=7))
    answered.append(await client.receive_response("Fetch", FETCH_VERSION))
    answered += [await client.receive_response("Metadata", METADATA_VERSION) for _ in range(3)]
    assert [correlation_id for correlation_id, _ in answered] == [1, 2, 3, 4, 5, 6, 7]
    assert answered[3][1].session_id == 7


async def test_one_request_of_a_connection_executes_at_a_time(serve: Serve) -> None:
    handlers, executing = default_handlers(), []

    async def handle(context: object, request: FetchRequest) -> FetchResponse:
        executing.append(request.session_id)
        assert len(executing) == 1
        await asyncio.sleep(0)
        executing.clear()
        return FetchResponse()

    handlers.on("Fetch", handle)
    client = await (await serve(handlers)).connect()
    for number in range(20):
        await client.send_request("Fetch", FETCH_VERSION, FetchRequest(session_id=number))
    for number in range(20):
        assert (await client.receive_response("Fetch", FETCH_VERSION))[0] == number + 1


async def test_a_parked_request_delays_no_other_connection(serve: Serve) -> None:
    handlers = default_handlers()
    handlers.on("Fetch", lambda context, request: asyncio.get_running_loop().create_future())
    serving = await serve(handlers)
    parked, other = await serving.connect(), await serving.connect()
    await parked.send_request("Fetch", FETCH_VERSION, FetchRequest())
    assert (await other.ask("Metadata", METADATA_VERSION, MetadataRequest())).cluster_id == "test"


async def test_requests_delivered_byte_by_byte_are_answered(serve: Serve) -> None:
    serving = await serve()
    client = await serving.connect()
    data = framed_request("Metadata", METADATA_VERSION, MetadataRequest()) * 2
    for byte in data:
        await client.send(bytes([byte]))
        await asyncio.sleep(0)
    for _ in range(2):
        assert (await client.receive_response("Metadata", METADATA_VERSION))[1].cluster_id == "test"


async def test_more_requests_at_once_than_a_turn_executes_are_all_answered(serve: Serve) -> None:
    client = await (await serve()).connect()
    await client.send(framed_request("Metadata", METADATA_VERSION, MetadataRequest()) * 1000)
    for _ in range(1000):
        await client.receive_frame()


async def test_a_flooding_connection_leaves_turns_to_others(serve: Serve) -> None:
    handlers, order = default_handlers(), []

    def handle(context: object, request: FetchRequest) -> FetchResponse:
        order.append(request.session_id)
        return FetchResponse()

    handlers.on("Fetch", handle)
    serving = await serve(handlers)
    flooding, other = await serving.connect(), await serving.connect()
    await serving.until(lambda: len(serving.connections) == 2)
    flood = framed_request("Fetch", FETCH_VERSION, FetchRequest(session_id=1)) * 1000
    flooding.socket.send(flood)
    other.socket.send(framed_request("Fetch", FETCH_VERSION, FetchRequest(session_id=2)))
    await other.receive_frame()
    assert order.index(2) <= 32


async def test_only_requests_with_an_answer_get_one(serve: Serve) -> None:
    handlers, seen = default_handlers(), []

    def handle(context: object, request: ProduceRequest) -> None:
        seen.append(bytes(records_of(request)))

    handlers.on("Produce", handle)
    client = await (await serve(handlers)).connect()
    await client.send_request("Produce", PRODUCE_VERSION, produce(b"one", acks=0))
    assert (await client.ask("Metadata", METADATA_VERSION, MetadataRequest())).cluster_id == "test"
    assert seen == [b"one"]


async def test_records_of_parked_requests_stay_whole_and_writable_while_others_send(serve: Serve) -> None:
    handlers, waiting = default_handlers(), []

    async def handle(context: object, request: ProduceRequest) -> ProduceResponse:
        records = records_of(request)
        future = asyncio.get_running_loop().create_future()
        waiting.append((future, records))
        await future
        assert not records.readonly
        content = records[0]
        assert records == bytes([content]) * len(records)
        records[0] = 255
        return produced(content)

    handlers.on("Produce", handle)
    serving = await serve(handlers)
    clients = [await serving.connect() for _ in range(8)]
    for number, client in enumerate(clients):
        size = (10, 5_000, 40_000, 300_000)[number % 4]
        await client.send_request("Produce", PRODUCE_VERSION, produce(bytes([number]) * size))
        await client.send_request("Produce", PRODUCE_VERSION, produce(bytes([100 + number]) * size))
    await serving.until(lambda: len(waiting) == len(clients))
    for future, _ in waiting:
        future.set_result(None)
    await serving.until(lambda: len(waiting) == 2 * len(clients))
    for future, _ in waiting[len(clients) :]:
        future.set_result(None)
    for number, client in enumerate(clients):
        for content in (number, 100 + number):
            _, response = await client.receive_response("Produce", PRODUCE_VERSION)
            assert response.responses[0].partition_responses[0].base_offset == content


async def test_reading_stops_while_too_much_waits_behind_a_parked_request(serve: Serve) -> None:
    handlers = default_handlers()
    parked = asyncio.get_running_loop().create_future()
    handlers.on("Fetch", lambda context, request: parked)
    handlers.on("Produce", lambda context, request: produced(len(records_of(request))))
    serving = await serve(handlers)
    client = await serving.connect()
    await client.send_request("Fetch", FETCH_VERSION, FetchRequest())
    data = framed_request("Produce", PRODUCE_VERSION, produce(bytes(10_000))) * 2_000
    sending = asyncio.create_task(client.send(data))
    (connection,) = serving.connections
    await serving.until(lambda: not connection.is_reading)
    assert connection.buffered < 512 * 1024
    assert not sending.done()
    parked.set_result(FetchResponse())
    await client.receive_frame()
    for _ in range(2_000):
        await client.receive_frame()
    await sending


async def test_while_a_request_is_executed_no_more_than_the_next_one_is_received(serve: Serve) -> None:
    handlers, waiting = default_handlers(), []

    async def handle(context: object, request: ProduceRequest) -> ProduceResponse:
        waiting.append(asyncio.get_running_loop().create_future())
        return await waiting[-1]

    handlers.on("Produce", handle)
    serving = await serve(handlers)
    client = await serving.connect()
    frame = framed_request("Produce", PRODUCE_VERSION, produce(bytes(200_000)))
    sending = asyncio.create_task(client.send(frame * 50))
    await serving.until(lambda: bool(waiting))
    (connection,) = serving.connections
    await serving.until(lambda: not connection.is_reading)
    assert len(frame) <= connection.buffered < 3 * len(frame)
    for number in range(50):
        await serving.until(lambda number=number: len(waiting) == number + 1)
        waiting[number].set_result(produced(number))
        await client.receive_frame()
    await sending


async def test_a_slow_reader_is_not_read_from_until_it_reads(serve: Serve) -> None:
    handlers, executed = default_handlers(), []

    def handle(context: object, request: MetadataRequest) -> MetadataResponse:
        executed.append(1)
        return MetadataResponse(cluster_id="x" * 30_000)

    handlers.on("Metadata", handle)
    serving = await serve(handlers, socket_send_buffer_bytes="102400")
    client = await serving.connect(receive_buffer=4096)
    sending = asyncio.create_task(client.send(framed_request("Metadata", METADATA_VERSION, MetadataRequest()) * 600))
    await serving.until(lambda: len(serving.connections) == 1)
    (connection,) = serving.connections
    await serving.until(lambda: not (connection.is_reading or connection.is_busy))
    assert len(executed) < 200
    assert connection.unsent < 1024 * 1024
    for _ in range(600):
        assert len(await client.receive_frame()) > 30_000
    await sending
    await serving.until(lambda: connection.is_reading)
    assert connection.unsent == 0


async def test_a_client_that_sends_instead_of_reading_is_not_read_from(serve: Serve) -> None:
    handlers = default_handlers()
    partition = PartitionData(0, records=bytes(10_000_000))
    response = FetchResponse(responses=[FetchableTopicResponse("t", partitions=[partition])])
    handlers.on("Fetch", lambda context, request: response)
    serving = await serve(handlers)
    client = await serving.connect(receive_buffer=4096)
    request = framed_request("Fetch", FETCH_VERSION, FetchRequest())
    await client.send(request)
    await serving.until(lambda: any(connection.unsent for connection in serving.connections))
    (connection,) = serving.connections
    assert connection.is_reading

    await client.send(request)
    await serving.until(lambda: not connection.is_reading)
    assert connection.buffered == len(request)

    for _ in range(2):
        assert len(await client.receive_frame()) > 10_000_000
    await serving.until(lambda: connection.is_reading)


async def test_slices_of_files_arrive_inside_their_responses(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(bytes(range(256)) * 20_000)
    handlers = default_handlers()

    def handle(context: object, request: FetchRequest) -> FetchResponse:
        slices = [Slice(path, 10, 100), Slice(path, 256, 3_000_000), Slice(path, 0, 0), Slice(path, 7, 40_000)]
        partitions = [PartitionData(number, records=of) for number, of in enumerate(slices)]
        return FetchResponse(responses=[FetchableTopicResponse("t", partitions=partitions)])

    handlers.on("Fetch", handle)
    client = await (await serve(handlers)).connect()
    await client.send(framed_request("Fetch", FETCH_VERSION, FetchRequest()) * 3)
    for _ in range(3):
        _, response = await client.receive_response("Fetch", FETCH_VERSION)
        records = [bytes(partition.records) for partition in response.responses[0].partitions]
        whole = path.read_bytes()
        assert records == [whole[10:110], whole[256:3_000_256], b"", whole[7:40_007]]


async def test_a_large_request_is_received_whole(serve: Serve) -> None:
    handlers = default_handlers()
    handlers.on("Produce", lambda context, request: produced(len(records_of(request))))
    client = await (await serve(handlers)).connect()
    for size in (20 * 1024 * 1024, 10, 1_000_000):
        response = await client.ask("Produce", PRODUCE_VERSION, produce(bytes(size)))
        assert response.responses[0].partition_responses[0].base_offset == size


async def test_500_idle_connections_cost_nothing(serve: Serve) -> None:
    serving = await serve()
    idle = [await serving.connect() for _ in range(500)]
    await serving.until(lambda: len(serving.connections) == 500)
    client = await serving.connect()
    for _ in range(10):
        await client.ask("Metadata", METADATA_VERSION, MetadataRequest())
    assert (await idle[77].ask("ApiVersions", 3, ApiVersionsRequest("x", "1"))).api_keys


async def test_the_context_has_the_addresses_and_the_client(serve: Serve) -> None:
    handlers, seen = default_handlers(), []

    def handle(context: object, request: MetadataRequest) -> MetadataResponse:
        seen.append(context)
        return MetadataResponse()

    handlers.on("Metadata", handle)
    serving = await serve(handlers)
    client = await serving.connect(source="127.0.0.9")
    await client.ask("ApiVersions", 3, ApiVersionsRequest("some-client", "1.2"))
    await client.ask("Metadata", METADATA_VERSION, MetadataRequest())
    (context,) = seen
    assert (context.api_key, context.api_version, context.client_id) == (3, METADATA_VERSION, "test")
    assert context.listener_name == "PLAINTEXT"
    assert context.local_address == serving.server.listeners[0].address
    assert context.peer_address == client.socket.getsockname()
    assert (context.client_software_name, context.client_software_version) == ("some-client", "1.2")


async def test_a_long_software_name_is_cut(serve: Serve) -> None:
    serving = await serve()
    client = await serving.connect()
    await client.ask("ApiVersions", 3, ApiVersionsRequest("n" * 30_000, "1" * 30_000))
    assert dict(serving.metrics.listener("PLAINTEXT").software) == {("n" * 256, "1" * 256): 1}
    client.close()
    await serving.until(lambda: not serving.metrics.listener("PLAINTEXT").software)


async def test_a_frame_of_size_zero_is_an_error(serve: Serve) -> None:
    client = await (await serve()).connect()
    await client.send(struct.pack(">i", 0))
    assert await client.is_closed()
