"""The cost of a transaction's requests in their handlers: Produce of one record and EndTxn, version 2 of the protocol.

Without sockets, framing and codec; files are in a temporary directory. The figure is the median time of one call, in
turns of all kinds of work, because single calls are disturbed by other load.

    python -m benchmarks.transaction_requests [--transactions N] [--profile]
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import pstats
import time
from collections.abc import Awaitable, Callable
from statistics import median, quantiles

from benchmarks.side_by_side.transactional_load import Producer, Work, batch
from odradek.broker.broker import Broker
from odradek.broker.handlers import end_txn, produce
from odradek.broker.request.context import ConnectionContext, RequestContext
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.records.batch_builder import BatchBuilder
from tests.peers.transactional.raw import TRANSACTION, ask, find_coordinator
from tests.wire import Wire

PRODUCE, END_TXN = 0, 26
VERSIONS = {PRODUCE: 12, END_TXN: 5}
ID = "benchmark-0"
VALUE_BYTES = 100


class Requests:
    """One broker in this process, one transactional producer and one idempotent one, of one topic."""

    def __init__(self, broker: Broker, topic: str, producer: Producer) -> None:
        self._services = broker.services
        self._work = Work(topic, [0], 1, VALUE_BYTES, 2)
        self._producer = producer
        address = ("127.0.0.1", 9092)
        connection = ConnectionContext("PLAINTEXT", address, address)
        self._contexts = {
            key: RequestContext(key, version, 0, "benchmark", 0.0, connection) for key, version in VERSIONS.items()
        }

    def plain(self) -> Callable[[], object]:
        builder = BatchBuilder()
        builder.append(0, None, bytes(VALUE_BYTES))
        return self._produce(bytes(builder.build()), None)

    def transactional(self) -> Callable[[], object]:
        return self._produce(batch(1, VALUE_BYTES, self._producer), self._producer.transactional_id)

    def _produce(self, records: bytes, transactional_id: str | None) -> Callable[[], object]:
        data = PartitionProduceData(0, memoryview(bytearray(records)))
        request = ProduceRequest(
            transactional_id, -1, 30_000, [TopicProduceData(self._work.topic, partition_data=[data])]
        )
        return lambda: produce.handle(self._services, self._contexts[PRODUCE], request)

    def end(self) -> Callable[[], object]:
        request = EndTxnRequest(*self._producer, committed=True)
        return lambda: end_txn.handle(self._services, self._contexts[END_TXN], request)

    def ended(self, answer: object) -> None:
        """Go on with the epoch of the answer to EndTxn."""
        assert not answer.error_code, answer  # type: ignore[attr-defined]
        self._producer = Producer(ID, answer.producer_id, answer.producer_epoch)  # type: ignore[attr-defined]


def timed(taken: list[float], work: Callable[[], object]) -> object:
    start = time.perf_counter()
    answer = work()
    taken.append(time.perf_counter() - start)
    return answer


async def measure(transactions: int, *, profile: bool) -> None:
    async with Broker() as broker, Wire("127.0.0.1", broker.port) as wire:
        await ask(wire, CreateTopicsRequest([CreatableTopic("work", 1, 1)]), 7)
        await find_coordinator(wire, ID, TRANSACTION)
        answer = await ask(wire, InitProducerIdRequest(ID, 60_000), 5)
        requests = Requests(broker, "work", Producer(ID, answer.producer_id, answer.producer_epoch))
        taken: dict[str, list[float]] = {"Produce, no transaction": [], "Produce": [], "EndTxn": []}
        waits = 0
        profiler = cProfile.Profile()
        gc.freeze()
        for _ in range(transactions):
            timed(taken["Produce, no transaction"], requests.plain())
            first, last = requests.transactional(), requests.end()
            if profile:
                profiler.enable()
            produced = timed(taken["Produce"], first)
            if isinstance(produced, Awaitable):  # the first append to a partition
                waits += 1
                await produced
            ended = timed(taken["EndTxn"], last)
            profiler.disable()
            if isinstance(ended, Awaitable):
                waits += 1
                ended = await ended
            requests.ended(ended)
            await asyncio.sleep(0)  # as after the requests of a connection
    print(f"{waits} of {transactions} transactions waited")
    for name, times in taken.items():
        counted = times[len(times) // 5 :]
        print(f"{name:24} {median(counted) * 1e6:8.1f} µs, fastest tenth {quantiles(counted, n=10)[0] * 1e6:8.1f} µs")
    if profile:
        pstats.Stats(profiler).sort_stats("cumulative").print_stats(70)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transactions", type=int, default=5000)
    parser.add_argument("--profile", action="store_true", help="print where the time goes; the times are then longer")
    parsed = parser.parse_args()
    asyncio.run(measure(parsed.transactions, profile=parsed.profile))
