"""The requests of transactional producers, against a broker in this process or a real one (`--server apache`)."""

from __future__ import annotations

import pytest

from odradek.broker.broker import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from odradek.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.handlers.requests import create
from tests.handlers.transactional_producer import TransactionalProducer
from tests.wire import Wire


@pytest.fixture
async def producer(wire: Wire) -> TransactionalProducer:
    """An initialized producer; topic `t` has three partitions."""
    await create(wire, "t", 3)
    producer = TransactionalProducer(wire)
    await producer.start()
    return producer


async def until_completed(producer: TransactionalProducer) -> str:
    """Return the state when no markers are being written any more; here that is the first one."""
    while (state := (await producer.describe()).transaction_state).startswith("Prepare"):
        pass
    return state


@pytest.mark.parametrize("version", range(6))
async def test_a_new_id_begins_with_epoch_0(wire: Wire, version: int) -> None:
    producer = TransactionalProducer(wire, f"new-{version}")

    await producer.start(version=version)

    assert (producer.producer_id >= 0, producer.epoch) == (True, 0)


@pytest.mark.parametrize("version", range(6))
async def test_an_empty_id_is_refused(producer: TransactionalProducer, version: int) -> None:
    producer.transactional_id = ""

    assert await producer.initialize(version=version) is ErrorCode.INVALID_REQUEST
    assert await producer.end(commit=True, version=version) is ErrorCode.INVALID_REQUEST
    assert await producer.add_offsets("g", min(version, 4)) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
async def test_a_timeout_must_be_positive_and_not_above_the_maximum(
    producer: TransactionalProducer, timeout_ms: int
) -> None:
    assert await producer.initialize(timeout_ms) is ErrorCode.INVALID_TRANSACTION_TIMEOUT


@pytest.mark.parametrize(("producer_id", "epoch"), [(5, -1), (-1, 5)])
async def test_a_producer_has_both_id_and_epoch_or_neither(
    producer: TransactionalProducer, producer_id: int, epoch: int
) -> None:
    code = await producer.initialize(producer_id=producer_id, producer_epoch=epoch)

    assert code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("commit", [True, False])
async def test_the_epoch_stays_before_version_5(producer: TransactionalProducer, version: int, commit: bool) -> None:
    for _ in range(3):
        assert await producer.add({"t": [0, 1]}) == {("t", 0): ErrorCode.NONE, ("t", 1): ErrorCode.NONE}
        assert await producer.end(commit=commit, version=version) is ErrorCode.NONE
        assert await until_completed(producer) == ("CompleteCommit" if commit else "CompleteAbort")
        assert await producer.end(commit=commit, version=version) is ErrorCode.NONE
        assert await producer.end(commit=not commit, version=version) is ErrorCode.INVALID_TXN_STATE

    assert (await producer.describe()).producer_epoch == producer.epoch == 0


async def test_every_end_raises_the_epoch_from_version_5_on(producer: TransactionalProducer) -> None:
    epochs = []
    for commit in (True, False, True):
        await producer.add_as_broker({"t": [2]})
        assert await producer.end(commit=commit) is ErrorCode.NONE
        await until_completed(producer)
        epochs.append(producer.epoch)

    assert epochs == [1, 2, 3]


async def test_a_repeated_end_is_answered_with_the_next_epoch(producer: TransactionalProducer) -> None:
    await producer.add_as_broker({"t": [2]})
    await producer.end(commit=True)
    await until_completed(producer)
    producer.epoch -= 1

    assert await producer.end(commit=True) is ErrorCode.NONE
    assert producer.epoch == 1


async def test_the_next_transaction_meets_no_concurrent_one(only_here: None, producer: TransactionalProducer) -> None:
    for _ in range(20):
        assert await producer.add_as_broker({"t": [0, 1, 2]}) == {("t", i): ErrorCode.NONE for i in range(3)}
        assert await producer.add_offsets("g") is ErrorCode.NONE
        assert await producer.end(commit=True) is ErrorCode.NONE
        assert (await producer.describe()).transaction_state == "CompleteCommit"


async def test_a_second_producer_fences_the_first(producer: TransactionalProducer) -> None:
    await producer.add({"t": [0]})
    second = TransactionalProducer(producer.wire)
    assert await second.initialize() is ErrorCode.CONCURRENT_TRANSACTIONS
    await second.start()

    assert (second.producer_id, second.epoch) == (producer.producer_id, 2)
    for version, code in ((1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)):
        assert await producer.end(commit=True, version=version) is code
        assert await producer.add({"t": [0]}, version) == {("t", 0): code}
        assert await producer.add_offsets("g", version) is code
    fenced = {"producer_id": producer.producer_id, "producer_epoch": 0}
    assert await producer.initialize(version=3, **fenced) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert await producer.initialize(version=4, **fenced) is ErrorCode.PRODUCER_FENCED


async def test_a_producer_goes_on_with_its_id_and_epoch(producer: TransactionalProducer) -> None:
    current = {"producer_id": producer.producer_id, "producer_epoch": 0}

    for _ in range(2):  # the second answers a repeated request
        assert await producer.initialize(**current) is ErrorCode.NONE
        assert producer.epoch == 1


async def test_all_partitions_are_added_or_none(producer: TransactionalProducer) -> None:
    assert await producer.add({"t": [0, 7], "missing": [0]}) == {
        ("t", 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
        ("t", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("missing", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert (await producer.describe()).transaction_state == "Empty"


async def test_leaders_verify_partitions(producer: TransactionalProducer) -> None:
    await producer.add({"t": [0]})

    assert await producer.add_as_broker({"t": [0, 1]}, verify_only=True) == {
        ("t", 0): ErrorCode.NONE,
        ("t", 1): ErrorCode.TRANSACTION_ABORTABLE,
    }
    producer.epoch = 9
    assert await producer.add_as_broker({"t": [0]}, verify_only=True) == {("t", 0): ErrorCode.PRODUCER_FENCED}
    producer.producer_id += 1
    assert await producer.add_as_broker({"t": [0]}) == {("t", 0): ErrorCode.INVALID_PRODUCER_ID_MAPPING}


async def test_an_id_without_state_has_no_producer(wire: Wire) -> None:
    producer = TransactionalProducer(wire, "unknown")
    await producer.find_coordinator()

    assert await producer.end(commit=True) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert (await producer.describe()).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


async def test_an_open_transaction_is_described(producer: TransactionalProducer) -> None:
    await producer.add({"t": [2, 0]})

    row = await producer.describe()

    assert (row.error_code, row.transaction_state, row.transaction_timeout_ms) == (ErrorCode.NONE, "Ongoing", 60_000)
    assert (row.producer_id, row.producer_epoch) == (producer.producer_id, 0)
    assert [(topic.topic, sorted(topic.partitions)) for topic in row.topics] == [("t", [0, 2])]
    assert row.transaction_start_time_ms > 0


async def list_transactions(wire: Wire, version: int = 2, **fields: object) -> ListTransactionsResponse:
    response = await wire.ask(ListTransactionsRequest(**fields), version)  # type: ignore[arg-type]
    assert isinstance(response, ListTransactionsResponse)
    return response


async def test_transactions_are_listed_by_filters(wire: Wire, producer: TransactionalProducer) -> None:
    other = TransactionalProducer(wire, "other")
    await other.start()
    await producer.add({"t": [0]})

    async def ids(**fields: object) -> list[str]:
        rows = (await list_transactions(wire, **fields)).transaction_states
        return sorted(row.transactional_id for row in rows if row.transactional_id in ("t", "other"))

    assert await ids() == ["other", "t"]
    assert await ids(state_filters=["Ongoing"]) == ["t"]
    assert await ids(producer_id_filters=[other.producer_id]) == ["other"]
    assert await ids(duration_filter=60_000) == ["other"]
    assert await ids(transactional_id_pattern="o.*") == ["other"]
    assert await ids(transactional_id_pattern="o") == []
    assert await ids(transactional_id_pattern="") == ["other", "t"]


async def test_unknown_states_are_returned(wire: Wire, producer: TransactionalProducer) -> None:
    response = await list_transactions(wire, state_filters=["Open", "Dead"])

    assert (response.unknown_state_filters, response.transaction_states) == (["Open"], [])


async def test_a_bad_pattern_is_refused(wire: Wire, producer: TransactionalProducer) -> None:
    response = await list_transactions(wire, transactional_id_pattern="(")

    assert response.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


async def test_ids_and_open_transactions_survive_a_restart(tmp_path: object) -> None:
    properties = {"log.dirs": str(tmp_path)}
    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t", 3)
        producer = TransactionalProducer(wire)
        await producer.start()
        await producer.add_as_broker({"t": [0]})
    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        producer.wire = wire
        await producer.find_coordinator()

        assert (await producer.describe()).transaction_state == "Ongoing"
        assert await producer.end(commit=True) is ErrorCode.NONE
        assert (await producer.describe()).transaction_state == "CompleteCommit"
        assert producer.epoch == 1


async def test_under_level_0_requests_of_version_2_that_need_a_record_are_refused(wire: Wire) -> None:
    await create(wire, "t", 3)
    row = [AddPartitionsToTxnTopic("t", [1])]
    try:
        await set_level(wire, 0)
        adding, ending, other = [TransactionalProducer(wire, name) for name in ("adding", "ending", "other")]
        for producer in (adding, ending, other):
            await producer.start()
            assert await producer.add({"t": [0]}) == {("t", 0): ErrorCode.NONE}
        assert await adding.add_as_broker({"t": [0]}) == {("t", 0): ErrorCode.NONE}
        transactions = [
            AddPartitionsToTxnTransaction(each.transactional_id, each.producer_id, each.epoch, verify_only, row)
            for each, verify_only in ((other, True), (adding, False))
        ]
        response = await wire.ask(AddPartitionsToTxnRequest(transactions), 5)
        assert (response.error_code, response.results_by_transaction) == (ErrorCode.UNSUPPORTED_VERSION, [])
        assert await ending.end(commit=True) is ErrorCode.UNSUPPORTED_VERSION
        assert await other.end(commit=True, version=4) is ErrorCode.NONE
    finally:
        await set_level(wire, 2)


async def set_level(wire: Wire, level: int) -> None:
    """Finalize a level of transaction.version, and wait until it is reported."""
    update = FeatureUpdateKey("transaction.version", level, upgrade_type=1 if level else 2)
    response = await wire.ask(UpdateFeaturesRequest(feature_updates=[update]), 2)
    assert response.error_code == ErrorCode.NONE
    while True:
        answer = await wire.ask(ApiVersionsRequest("x", "1"), 4)
        levels = {each.name: each.max_version_level for each in answer.finalized_features}
        if levels.get("transaction.version", 0) == level:
            return
