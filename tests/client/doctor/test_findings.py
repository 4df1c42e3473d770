"""Every finding of `doctor`, provoked by real listeners, as the command prints it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.client.config import Address
from odradek.client.doctor.diagnosis import diagnose
from odradek.client.doctor.finding import Finding, Severity
from odradek.client.network.transport import TcpNetwork
from odradek.protocol.messages.describe_quorum import (
    DescribeQuorumResponse,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)
from odradek.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.protocol.messages.produce import ProduceResponse
from odradek.protocol.schema import Message
from tests.client.cli.commands import run, run_json
from tests.client.doctor import listeners
from tests.client.doctor.listeners import broker, listening, tls_context

OK, PROBLEM, WARNING, NOTE = "ok     ", "problem", "warning", "note   "


async def examine(servers: str, *arguments: str, status: int) -> list[str]:
    out, err = await run("doctor", "--bootstrap-server", servers, *arguments, status=status)
    assert err == ""
    return [line.decode() for line in out]


@pytest.mark.servers("odradek", "apache")
async def test_a_healthy_cluster(bootstrap: str, topic: str) -> None:
    await run("topics", "create", "--bootstrap-server", bootstrap, "--topic", topic, "--partitions", "3")
    answers, cluster, partitions, transactions, clock = await examine(bootstrap, status=0)
    assert answers.startswith(f"{OK}  {bootstrap}: a Kafka broker responds (")
    assert cluster.startswith(f"{OK}  {bootstrap}: cluster ")
    assert partitions.startswith(f"{OK}  partitions: all ")
    assert partitions.endswith(" have a leader and all replicas in sync.")
    assert transactions == f"{OK}  transactions: none holds back readers of committed records."
    assert clock.startswith(
        (f"{OK}  clock: the controller's and ours agree to within ", f"{NOTE}  clock: not compared")
    )


@pytest.mark.servers("odradek", "apache")
async def test_a_round_trip_on_request(bootstrap: str) -> None:
    *_, trip, clock = await examine(bootstrap, "--write", status=0)
    assert trip.startswith(f"{OK}  round trip: a topic was created, a record written and read, the topic deleted (")
    assert clock.startswith(f"{OK}  clock: the broker's and ours agree to within ")
    topics = await run_json("topics", "list", "--bootstrap-server", bootstrap)
    assert not [row for row in topics if row["topic"].startswith("odradek-doctor-")]


async def test_a_round_trip_that_is_refused() -> None:
    async with Broker({"auto.create.topics.enable": "false", "default.replication.factor": "3"}) as real:
        line = (await examine(real.bootstrap, "--write", status=1))[-1]
    assert line.startswith(f"{PROBLEM}  round trip: create a topic: INVALID_REPLICATION_FACTOR (")


async def test_a_name_that_does_not_resolve() -> None:
    [line] = await examine("nowhere.invalid:9092", status=1)
    assert line.startswith(f"{PROBLEM}  nowhere.invalid:9092: nowhere.invalid cannot be resolved (")
    assert line.endswith(" Check the spelling, /etc/hosts and DNS on this machine.")


async def test_a_name_that_dns_cannot_have() -> None:
    [line] = await examine("a..b:9092", status=1)
    assert line.startswith(f"{PROBLEM}  a..b:9092: a..b cannot be resolved (it is not the name of a host)")


async def test_a_port_without_a_listener() -> None:
    [line] = await examine("127.0.0.1:1", status=1)
    assert line == (
        f"{PROBLEM}  127.0.0.1:1: no connection (127.0.0.1:1: connection refused)."
        " Check that the broker runs with this port, and does not listen on its own loopback only."
    )


@pytest.mark.parametrize(
    ("conversation", "text"),
    [
        (
            listeners.silent,
            "it accepts connections and does not respond. Check whether the broker is overloaded or stopped",
        ),
        (
            listeners.closing,
            "it accepts connections and closes them at the first request. Check that it is a Kafka listener:",
        ),
        (listeners.web, "a web server responds, not a Kafka broker. Use the port of the broker's listener."),
        (listeners.mail, "a server responds that is not a Kafka broker. Use the port of the broker's listener."),
    ],
)
async def test_a_port_of_something_else(conversation: listeners.Conversation, text: str) -> None:
    patience_ms = "400" if conversation is listeners.silent else "60000"
    async with listening(conversation) as address:
        [line] = await examine(address, "--timeout-ms", patience_ms, status=1)
    assert line.startswith(f"{PROBLEM}  {address}: {text}")


@pytest.mark.process
async def test_a_tls_listener(tmp_path: Path) -> None:
    async with listening(listeners.silent, tls_context(tmp_path)) as address:
        [line] = await examine(address, "--timeout-ms", "2000", status=1)
    assert line.startswith(
        f"{PROBLEM}  {address}: this is a TLS listener, and the client uses plain text. Use the port of"
    )


async def test_an_advertised_address_that_cannot_be_reached() -> None:
    for advertised, why in (
        ("nowhere.invalid:9092", "nowhere.invalid cannot be resolved ("),
        ("127.0.0.1:1", "no connection (127.0.0.1:1: connection refused)"),
    ):
        async with Broker({"advertised.listeners": f"PLAINTEXT://{advertised}"}) as real:
            _, _, line, *_ = await examine(real.bootstrap, status=1)
        assert line.startswith(f"{PROBLEM}  broker 1, advertised as {advertised}: {why}")
        example = f"such as {real.bootstrap}, which has just responded"
        assert f". Set advertised.listeners of broker 1 to what clients can reach, {example}, " in line
        assert line.endswith(f"or make {advertised} reachable from this machine.")


async def test_the_cure_for_an_unreachable_broker_is_not_the_address_of_another(
    cluster: dict[str, Any],
) -> None:
    cluster["others"] = [MetadataResponseBroker(2, "127.0.0.1", 1)]
    lines = await printed_lines(cluster, status=1)
    [line] = [line for line in lines if "broker 2, advertised as 127.0.0.1:1" in line]
    assert line.endswith("to what clients can reach, or make 127.0.0.1:1 reachable from this machine.")


async def test_bootstrap_servers_of_two_clusters() -> None:
    async with Broker() as one, Broker() as other:
        *_, line = await examine(f"{one.bootstrap},{other.bootstrap}", status=1)
    assert line.startswith(
        f"{PROBLEM}  cluster: the bootstrap servers belong to different clusters: {one.bootstrap} to "
    )


@pytest.fixture
def cluster() -> dict[str, Any]:
    """The responses of a scripted broker, which the test may change."""
    return {"controller": 1, "partitions": [(1, [1], [1])], "clock": time.time, "host": "127.0.0.1", "others": []}


def answers(said: dict[str, Any]) -> listeners.Answers:
    def metadata(port: int) -> Message:
        partitions = [
            MetadataResponsePartition(0, index, leader, 0, replicas, isr)
            for index, (leader, replicas, isr) in enumerate(said["partitions"])
        ]
        return MetadataResponse(
            brokers=[MetadataResponseBroker(1, said["host"], port), *said["others"]],
            cluster_id="scripted",
            controller_id=said["controller"],
            topics=[MetadataResponseTopic(name="orders", partitions=partitions)],
        )

    def quorum(_: int) -> Message:
        voter = ReplicaState(1, last_caught_up_timestamp=int(said["clock"]() * 1000))
        return DescribeQuorumResponse(
            topics=[
                ResponseTopicData("__cluster_metadata", [ResponsePartitionData(leader_id=1, current_voters=[voter])])
            ]
        )

    names = ("Produce", "Fetch", "ListOffsets")
    return {**dict.fromkeys(names, lambda _: ProduceResponse()), "Metadata": metadata, "DescribeQuorum": quorum}


async def printed_lines(said: dict[str, Any], *, status: int) -> list[str]:
    async with listening(broker(answers(said))) as address:
        return (await examine(address, status=status))[2:]


async def test_a_cluster_without_partitions(cluster: dict[str, Any]) -> None:
    cluster["partitions"] = []
    assert f"{OK}  partitions: there are none yet." in await printed_lines(cluster, status=0)


async def test_partitions_without_a_leader_or_with_replicas_out_of_sync(cluster: dict[str, Any]) -> None:
    cluster["partitions"] = [(1, [1], [1]), (-1, [2, 3], []), (1, [1, 2], [1])]
    without_leader, out_of_sync = await printed_lines(cluster, status=1)
    assert without_leader == (
        f"{PROBLEM}  partitions: 1 of 3 has no leader: orders-1 (replicas on 2 and 3). Start the brokers that have"
        " these replicas, and look for disk errors in their logs."
    )
    assert out_of_sync == (
        f"{WARNING}  partitions: 1 of 3 has replicas out of sync: orders-2 (not 2). Start those brokers, or check why"
        " they are slow."
    )


async def test_clocks_that_differ(cluster: dict[str, Any]) -> None:
    cluster["clock"] = lambda: time.time() + 3600
    line = (await printed_lines(cluster, status=0))[-1]
    assert line.startswith(f"{WARNING}  clock: the controller's is 3")
    assert " s ahead of ours. Use NTP on both machines" in line
    cluster["clock"] = lambda: time.time() - 90
    assert " s behind ours. " in (await printed_lines(cluster, status=0))[-1]


async def test_a_cluster_without_a_controller(cluster: dict[str, Any]) -> None:
    cluster["controller"] = -1
    lines = await printed_lines(cluster, status=1)
    assert lines[0].startswith(f"{PROBLEM}  cluster: there is no controller. Start the controllers:")


async def test_a_broker_that_advertises_all_addresses(cluster: dict[str, Any]) -> None:
    cluster["host"] = "0.0.0.0"
    lines = await printed_lines(cluster, status=1)
    assert ": clients cannot connect to this address. Set advertised.listeners of broker 1 " in lines[0]


def resolve(monkeypatch: pytest.MonkeyPatch, **addresses: list[str]) -> None:
    """Replace name resolution in this loop, with "_" for "."; the listeners are real."""

    async def resolved(host: str, port: int) -> list[Any]:
        return [(None, None, None, "", (one, port)) for one in addresses.get(host.replace(".", "_"), [host])]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolved, raising=False)


async def diagnosed(host: str, address: str) -> list[Finding]:
    """The findings for an address whose host has this name."""
    server = Address(host, int(address.partition(":")[2]))
    return [finding async for finding in diagnose([server], TcpNetwork(), 5)]


async def test_a_name_with_one_unreachable_address(cluster: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    resolve(monkeypatch, both_example=["127.0.0.2", "127.0.0.1"])
    async with listening(broker(answers(cluster))) as address:
        answering, half, *_ = await diagnosed("both.example", address)
    assert (answering.severity, half.severity) == (Severity.OK, Severity.WARNING)
    assert half.text == "both.example also resolves to 127.0.0.2 (connection refused)"
    assert half.cure == f"Some clients try only the first address: make the broker listen there, too, or use {address}"


async def test_a_broker_that_advertises_loopback_to_other_machines(
    cluster: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve(monkeypatch, kafka_example=["127.0.0.1"], localhost=["127.0.0.1"])
    cluster["host"] = "localhost"
    async with listening(broker(answers(cluster))) as address:
        port = address.partition(":")[2]
        findings = await diagnosed("kafka.example", address)
    [warning] = [finding for finding in findings if finding.severity is Severity.WARNING]
    assert warning.subject == f"broker 1, advertised as localhost:{port}"
    assert warning.text == "clients on other machines will try to connect to their own machine"
    assert f"such as kafka.example:{port}, " in warning.cure


async def test_a_listener_that_requires_authentication() -> None:
    only_versions = {name: lambda _: ProduceResponse() for name in ("Produce", "Fetch", "ListOffsets")}

    def closes(_: int) -> Message:
        raise ConnectionResetError

    async with listening(broker({**only_versions, "Metadata": closes})) as address:
        _, line = await examine(address, status=1)
    assert line.startswith(f"{PROBLEM}  {address}: it negotiates versions, but does not return metadata (")
    assert line.endswith(" If the listener requires authentication (SASL), use the port of one that does not.")


async def test_a_broker_without_common_versions() -> None:
    async with listening(broker({})) as address:
        _, line = await examine(address, status=1)
    assert line.startswith(f"{PROBLEM}  {address}: client and broker have no common version of Produce 3 to ")


async def test_findings_as_json() -> None:
    async with Broker() as real:
        findings = await run_json("doctor", "--bootstrap-server", real.bootstrap)
    assert {finding["severity"] for finding in findings} <= {"ok", "note"}
    assert findings[0].keys() == {"severity", "subject", "text", "cure"}
