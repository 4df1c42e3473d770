from __future__ import annotations

from itertools import pairwise

from odradek.broker.broker import Broker
from odradek.broker.explain import Trace
from odradek.broker.explain.events import GroupTransition, TransactionTransition
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from tests.handlers.group_members import GroupMember, find_coordinator
from tests.handlers.requests import create
from tests.handlers.transactional_producer import TransactionalProducer
from tests.wire import Wire


def of_group(trace: Trace) -> list[GroupTransition]:
    return [each for each in trace.events if isinstance(each, GroupTransition)]


def of_id(trace: Trace) -> list[TransactionTransition]:
    return [each for each in trace.events if isinstance(each, TransactionTransition)]


async def test_a_classic_group_from_its_first_to_its_last_member(wire: Wire, trace: Trace) -> None:
    await find_coordinator(wire, "readers")
    trace.install()
    member = GroupMember(wire, "readers")

    await member.become_only_member()
    await member.leave()

    transitions = of_group(trace)
    states = [state for each in transitions for state in each.states]
    assert [one for one, other in pairwise([*states, ""]) if one != other] == [
        "Empty",
        "PreparingRebalance",
        "CompletingRebalance",
        "Stable",
        "PreparingRebalance",
        "Empty",
    ]
    stable = next(each for each in transitions if each.states[-1] == "Stable")
    assert (stable.group_id, stable.group_type, stable.generation, stable.members) == ("readers", "classic", 1, 1)
    assert any("leave" in each.reason or "left" in each.reason for each in transitions)


async def test_a_transition_names_the_request_that_caused_it(wire: Wire, trace: Trace) -> None:
    await find_coordinator(wire, "readers")
    trace.install()
    await GroupMember(wire, "readers").become_only_member()

    sync = next(each for each in trace.requests() if each.api == "SyncGroup")
    assert next(each for each in of_group(trace) if each.states[-1] == "Stable").cause == sync.number
    assert sync.subject == "readers"


async def test_a_group_that_is_deleted(wire: Wire, trace: Trace) -> None:
    await find_coordinator(wire, "readers")
    member = GroupMember(wire, "readers")
    await member.become_only_member()
    await member.leave()
    trace.install()

    await wire.ask(DeleteGroupsRequest(["readers"]), 2)

    assert [each.states for each in of_group(trace)] == [("Empty", "none")]


async def test_a_group_of_the_consumer_protocol(wire: Wire, trace: Trace) -> None:
    await create(wire, "t")
    await find_coordinator(wire, "readers")
    trace.install()
    request = ConsumerGroupHeartbeatRequest(
        "readers", "member", 0, rebalance_timeout_ms=5000, subscribed_topic_names=["t"], topic_partitions=[]
    )

    await wire.ask(request, 1)

    first = of_group(trace)[0]
    assert (first.group_type, first.states[0], first.members) == ("consumer", "none", 1)
    assert first.generation >= 1


async def test_a_transaction_that_is_committed(broker: Broker, wire: Wire, trace: Trace) -> None:
    await create(wire, "t")
    producer = TransactionalProducer(wire, "copier")
    await producer.find_coordinator()
    trace.install()

    await producer.start()
    await producer.add({"t": [0]})
    await producer.end(commit=True, version=4)
    await broker.services.partitions.settled()

    transitions = of_id(trace)
    assert [each.states for each in transitions] == [
        ("none", "Empty"),
        ("Empty", "Ongoing"),
        ("Ongoing", "PrepareCommit"),
        ("PrepareCommit", "CompleteCommit"),
    ]
    assert {each.transactional_id for each in transitions} == {"copier"}
    assert {each.producer_id for each in transitions} == {producer.producer_id}
    assert transitions[1].partitions == ("t-0",)
    end = next(each for each in trace.requests() if each.api == "EndTxn")
    assert transitions[2].cause == transitions[3].cause == end.number


async def test_nothing_is_observed_after_removal(wire: Wire, trace: Trace) -> None:
    await find_coordinator(wire, "readers")
    trace.install()
    trace.remove()

    await GroupMember(wire, "readers").become_only_member()

    assert not trace.events
