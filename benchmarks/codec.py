"""The cost of messages: `python -m benchmarks.codec` prints µs a message, decoded and encoded, the best of 40 rounds.

The most frequent messages of a broker, with one partition and with a hundred, and Metadata of a hundred topics.
"""

from __future__ import annotations

from time import process_time

from odradek.protocol import codec
from odradek.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from odradek.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from odradek.protocol.schema import Message

ROUNDS = 40
ROUND_SECONDS = 0.004
BATCH = bytes(170)


def partition_data(index: int) -> PartitionData:
    return PartitionData(
        index,
        high_watermark=1000,
        last_stable_offset=1000,
        log_start_offset=0,
        aborted_transactions=None,
        records=BATCH,
    )


def topic(index: int) -> MetadataResponseTopic:
    partition = MetadataResponsePartition(leader_id=1, leader_epoch=3, replica_nodes=[1, 2, 3], isr_nodes=[1, 2, 3])
    return MetadataResponseTopic(name=f"topic-{index}", topic_id=index.to_bytes(16), partitions=[partition])


def fetch_request(count: int) -> FetchRequest:
    partitions = [FetchPartition(i, fetch_offset=i * 100, partition_max_bytes=1 << 20) for i in range(count)]
    return FetchRequest(max_wait_ms=500, min_bytes=1, topics=[FetchTopic(topic="benchmark", partitions=partitions)])


def fetch_response(count: int) -> FetchResponse:
    topic = FetchableTopicResponse(topic="benchmark", partitions=[partition_data(i) for i in range(count)])
    return FetchResponse(responses=[topic])


MESSAGES: dict[str, tuple[Message, int]] = {
    "Produce v9 request, 1 partition": (
        ProduceRequest(
            acks=1,
            timeout_ms=30_000,
            topic_data=[TopicProduceData(name="benchmark", partition_data=[PartitionProduceData(0, BATCH)])],
        ),
        9,
    ),
    "Produce v9 response, 1 partition": (
        ProduceResponse(
            responses=[TopicProduceResponse(name="benchmark", partition_responses=[PartitionProduceResponse(0)])]
        ),
        9,
    ),
    "Fetch v12 request, 1 partition": (fetch_request(1), 12),
    "Fetch v12 response, 1 partition": (fetch_response(1), 12),
    "Fetch v12 request, 100 partitions": (fetch_request(100), 12),
    "Fetch v12 response, 100 partitions": (fetch_response(100), 12),
    "Metadata v12 response, 100 topics": (
        MetadataResponse(
            brokers=[MetadataResponseBroker(1, "localhost", 9092)],
            cluster_id="c" * 22,
            controller_id=1,
            topics=[topic(i) for i in range(100)],
        ),
        12,
    ),
}


def decoding(cls: type[Message], version: int, data: memoryview, times: int) -> float:
    start = process_time()
    for _ in range(times):
        codec.decode(cls, version, data)
    return (process_time() - start) / times


def encoding(message: Message, version: int, times: int) -> float:
    start = process_time()
    for _ in range(times):
        codec.encode(message, version)
    return (process_time() - start) / times


def main() -> None:
    print(f"{'message':36} {'decode':>8} {'encode':>8}")
    for name, (message, version) in MESSAGES.items():
        data = memoryview(codec.encode(message, version))
        times = max(1, int(ROUND_SECONDS / encoding(message, version, 3)))
        decoded = min(decoding(type(message), version, data, times) for _ in range(ROUNDS))
        encoded = min(encoding(message, version, times) for _ in range(ROUNDS))
        print(f"{name:36} {decoded * 1e6:8.2f} {encoded * 1e6:8.2f}")


if __name__ == "__main__":
    main()
