from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from odradek.broker.storage.disk.files import UnsyncedFiles
from odradek.broker.testing.clock import ManualClock
from odradek.broker.testing.threaded import ThreadedBroker

ON_ITS_THREAD = "on the thread of its own event loop"


def produce(broker: ThreadedBroker, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce("t", value)
    assert producer.flush(30) == 0


def read(broker: ThreadedBroker, count: int) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition("t", 0, 0)])
    try:
        return [message.value() for message in consumer.consume(count, 30)]
    finally:
        consumer.close()


def names_in_directory(broker: ThreadedBroker) -> set[str]:
    return {path.name for path in Path(broker.broker.config.log_dirs[0]).iterdir()}


def test_clients_find_the_broker_again_after_each_end() -> None:
    with ThreadedBroker() as broker:
        address = broker.bootstrap
        values = [b"1", b"2", b"3", b"4"]
        for value, end in zip(values, (broker.stop, broker.kill, broker.restart, broker.stop), strict=True):
            if not broker.is_running:
                broker.start()
            produce(broker, value)
            end()
        broker.start()
        assert broker.bootstrap == address
        assert read(broker, 4) == values


def test_one_client_survives_a_restart_and_a_kill() -> None:
    with ThreadedBroker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "reconnect.backoff.max.ms": 100})
        producer.produce("t", b"1")
        assert producer.flush(30) == 0
        broker.restart()
        producer.produce("t", b"2")
        broker.kill()
        broker.start()
        assert producer.flush(30) == 0
        assert read(broker, 2) == [b"1", b"2"]


def test_a_kill_leaves_no_marker_of_a_clean_stop() -> None:
    with ThreadedBroker() as broker:
        broker.kill()
        assert ".kafka_cleanshutdown" not in names_in_directory(broker)
        broker.start()
        broker.stop()
        assert ".kafka_cleanshutdown" in names_in_directory(broker)


def test_run_and_call_return_results_and_raise_exceptions_of_the_brokers_thread() -> None:
    async def fails() -> None:
        raise LookupError("of a coroutine")

    with ThreadedBroker() as broker:
        assert broker.call(threading.get_ident) != threading.get_ident()
        assert broker.call(asyncio.get_running_loop) is broker.loop
        assert broker.run(asyncio.sleep(0, "result")) == "result"
        assert broker.call(int, "11", base=2) == 3
        with pytest.raises(LookupError, match="of a coroutine"):
            broker.run(fails())


def test_calls_to_a_stopped_broker_raise() -> None:
    broker = ThreadedBroker()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="stopped"):
            broker.call(int)
        with pytest.raises(RuntimeError, match="stopped"):
            _ = broker.loop
        broker.start()
        broker.stop()
    broker.close()


def test_a_call_that_the_end_interrupts_raises() -> None:
    with ThreadedBroker() as broker, ThreadPoolExecutor(1) as other:
        has_begun = threading.Event()

        async def waits() -> None:
            has_begun.set()
            await asyncio.Event().wait()

        call = other.submit(lambda: broker.run(waits()))
        assert has_begun.wait(30)
        broker.stop()
        with pytest.raises(RuntimeError, match="stopped"):
            call.result(30)


def test_blocking_calls_on_the_brokers_own_thread_raise() -> None:
    with ThreadedBroker() as broker:
        for method in (broker.start, broker.stop, broker.kill, broker.restart, broker.close):
            with pytest.raises(RuntimeError, match=ON_ITS_THREAD):
                broker.call(method)
        with pytest.raises(RuntimeError, match=ON_ITS_THREAD):
            broker.call(lambda: broker.call(int))
        assert broker.is_running


def test_several_threads_may_call_at_the_same_time() -> None:
    with ThreadedBroker() as broker, ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(lambda number: broker.call(int, number), range(100))) == list(range(100))
        for done in [pool.submit(broker.restart) for _ in range(8)]:
            done.result(60)
        assert broker.is_running
        produce(broker, b"1")
        assert read(broker, 1) == [b"1"]


def test_a_clock_and_files_of_the_test_are_used() -> None:
    opened: list[UnsyncedFiles] = []

    def new_files() -> UnsyncedFiles:
        opened.append(UnsyncedFiles())
        return opened[-1]

    clock = ManualClock()
    with ThreadedBroker({"log.message.timestamp.type": "LogAppendTime"}, clock=clock, new_files=new_files) as broker:
        assert broker.clock is clock
        broker.restart()
        assert len(opened) == 2


def test_a_broker_may_be_closed_while_an_event_loop_runs_here() -> None:
    broker = ThreadedBroker()

    async def main() -> None:
        broker.close()

    asyncio.run(main())
    assert not Path(broker.broker.config.log_dirs[0]).exists()


def test_no_thread_is_left() -> None:
    before = set(threading.enumerate())
    broker = ThreadedBroker()
    for end in (broker.stop, broker.kill, broker.close):
        broker.start()
        assert set(threading.enumerate()) > before
        end()
        assert set(threading.enumerate()) == before
