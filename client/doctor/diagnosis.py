"""The checks in their order; each depends on the ones before it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

from odradek.client.config import Address
from odradek.client.doctor.advertised import check_advertised
from odradek.client.doctor.clock import check_clock
from odradek.client.doctor.finding import Finding, Severity
from odradek.client.doctor.listener import Examiner
from odradek.client.doctor.partitions import check_partitions
from odradek.client.errors import ClientError, UnsupportedVersionError
from odradek.client.network.connection import Connection
from odradek.client.network.transport import Network
from odradek.client.security.settings import SecurityKeywords, SecuritySettings
from odradek.protocol.api import by_key
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.plural import pluralize

_NEEDED = {0: "Produce", 1: "Fetch", 2: "ListOffsets", 3: "Metadata"}
_NEEDED_FOR_TRANSACTIONS = (61, 65, 66)
"""DescribeProducers, DescribeTransactions, ListTransactions: brokers have them since Kafka 3.0."""


async def diagnose(
    servers: Sequence[Address],
    network: Network,
    seconds: float,
    *,
    writes: bool = False,
    settings: SecurityKeywords | None = None,
) -> AsyncIterator[Finding]:
    """Yield the findings as they are made, with so many seconds for each step; `writes` permits a test topic.

    `settings` are those of TLS and SASL, of which `network` was made, too. Raises ConfigurationError.
    """
    settings = settings or {}
    security = SecuritySettings(**settings)
    examiner = Examiner(network, seconds, security)
    connections: dict[Address, Connection] = {}
    try:
        for server in servers:
            findings, connection = await examiner.examine(server, str(server))
            for finding in findings:
                yield finding
            if connection is not None:
                connections[server] = connection
        is_sound = True
        async for finding in _diagnose_cluster(examiner, servers, connections):
            is_sound = is_sound and finding.severity is not Severity.PROBLEM
            yield finding
        if connections:
            from odradek.client.doctor.authentication import check_rights

            used = next(iter(connections.values()))
            for finding in await check_rights(used, always=security.security_protocol != "PLAINTEXT"):
                yield finding
            if is_sound:
                for finding in await _diagnose_work(connections, network, seconds, settings, writes=writes):
                    yield finding
    finally:
        for connection in connections.values():
            connection.close()


async def _diagnose_work(
    connections: Mapping[Address, Connection],
    network: Network,
    seconds: float,
    settings: SecurityKeywords,
    *,
    writes: bool,
) -> list[Finding]:
    """The checks of a cluster that can be used: transactions, and a round trip or the clock."""
    findings = []
    servers, used = list(connections), next(iter(connections.values()))
    if _lists_transactions(used):
        from odradek.client.doctor.open_transactions import check_open_transactions  # loads Admin

        findings += await check_open_transactions(servers, network, seconds, settings)
    if writes:
        from odradek.client.doctor.round_trip import check_round_trip  # loads the whole client

        return findings + await check_round_trip(servers, network, seconds, settings)
    return [*findings, await check_clock(used)]


async def _diagnose_cluster(
    examiner: Examiner, servers: Sequence[Address], connections: dict[Address, Connection]
) -> AsyncIterator[Finding]:
    clusters: dict[str | None, Address] = {}
    metadata: MetadataResponse | None = None
    for server, connection in connections.items():
        versions = _check_versions(connection)
        if versions is not None:
            yield versions
            continue
        try:
            metadata = await connection.send(MetadataRequest(None, False), MetadataResponse)
        except ClientError as error:
            yield await _refused(examiner, server, error)
            continue
        clusters.setdefault(metadata.cluster_id, server)
        yield Finding(
            Severity.OK, str(server), f"cluster {metadata.cluster_id}, {pluralize(len(metadata.brokers), 'broker')}"
        )
    if len(clusters) > 1:
        text = "the bootstrap servers belong to different clusters"
        named = ", ".join(f"{server} to {cluster}" for cluster, server in clusters.items())
        yield Finding(Severity.PROBLEM, "cluster", f"{text}: {named}", "Use the servers of one cluster")
    elif metadata is not None:
        bootstrap = {server: server in connections for server in servers}
        for finding in await check_advertised(examiner, metadata, bootstrap):
            yield finding
        for finding in _check_controller(metadata):
            yield finding
        for finding in check_partitions(metadata):
            yield finding


def _check_versions(connection: Connection) -> Finding | None:
    """The problem that an API of every client has no common version, or None."""
    missing = []
    for key, name in _NEEDED.items():
        try:
            connection.versions.highest(key)
        except UnsupportedVersionError:
            api = by_key(key)
            missing.append(f"{name} {api.min_version} to {api.max_version}")
    if not missing:
        return None
    text = f"client and broker have no common version of {', '.join(missing)}"
    return Finding(Severity.PROBLEM, connection.name, text, "Upgrade the older side; Kafka 2.1 and later work")


def _lists_transactions(connection: Connection) -> bool:
    try:
        for key in _NEEDED_FOR_TRANSACTIONS:
            connection.versions.highest(key)
    except UnsupportedVersionError:
        return False
    return True


async def _refused(examiner: Examiner, server: Address, error: ClientError) -> Finding:
    offered = None if examiner.security.uses_sasl else await examiner.mechanisms(server)
    if offered:
        protocol = "SASL_SSL" if examiner.security.uses_tls else "SASL_PLAINTEXT"
        return Finding(
            Severity.PROBLEM,
            str(server),
            f"the listener demands authentication by SASL; it offers {', '.join(offered)}",
            f"Set security.protocol to {protocol}, sasl.mechanism and the user (--command-config)",
        )
    return Finding(
        Severity.PROBLEM,
        str(server),
        f"it negotiates versions, but does not return metadata ({error.cause})",
        "If the listener requires authentication (SASL), use the port of one that does not",
    )


def _check_controller(metadata: MetadataResponse) -> list[Finding]:
    if metadata.controller_id >= 0:
        return []
    cure = "Start the controllers: without them topics cannot be created and no leaders are elected"
    return [Finding(Severity.PROBLEM, "cluster", "there is no controller", cure)]
