"""The SASL mechanisms that a listener offers, and the rights of this client's principal."""

from __future__ import annotations

from collections.abc import Iterable

from odradek.client.admin.acl_values import AclOperation
from odradek.client.config import Address
from odradek.client.doctor.finding import Finding, Severity
from odradek.client.errors import ClientError
from odradek.client.network.connection import Connection, open_connection
from odradek.client.network.transport import Network
from odradek.client.security.settings import SecuritySettings
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from odradek.protocol.plural import pluralize

_NO_MECHANISM = "odradek-doctor"  # the broker answers with those that it has
_ON_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
_UNKNOWN = -(2**31)
_METADATA_KEY = 3
_FIRST_WITH_OPERATIONS = 8
_OF_CLUSTER = (
    AclOperation.CREATE, AclOperation.ALTER, AclOperation.DESCRIBE, AclOperation.CLUSTER_ACTION,
    AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS, AclOperation.IDEMPOTENT_WRITE,
)  # fmt: skip


async def offered_mechanisms(network: Network, address: Address, client_id: str, seconds: float) -> list[str] | None:
    """Ask a listener for its SASL mechanisms, on a connection of its own; None if it has no SASL or does not answer."""
    try:
        connection = await open_connection(
            network, address, str(address), client_id=client_id, connect_timeout=seconds, request_timeout=seconds
        )
    except ClientError:
        return None
    try:
        response = await connection.send(SaslHandshakeRequest(_NO_MECHANISM), SaslHandshakeResponse, timeout=seconds)
    except ClientError:
        return None
    finally:
        connection.close()
    return response.mechanisms if response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM else None


def describe_authentication(
    subject: str, host: str, security: SecuritySettings, offered: list[str] | None
) -> list[Finding]:
    """The findings about a connection that has authenticated."""
    others = f"; the listener offers {', '.join(offered)}" if offered else ""
    findings = [Finding(Severity.OK, subject, f"authenticated with {security.sasl_mechanism}{others}")]
    if not security.uses_tls and host not in _ON_THIS_MACHINE and security.sasl_mechanism in ("PLAIN", "OAUTHBEARER"):
        secret = "password" if security.sasl_mechanism == "PLAIN" else "token"
        text = f"the {secret} is sent unencrypted, and so are all records"
        findings.append(Finding(Severity.WARNING, subject, text, "Use a listener with SASL_SSL"))
    return findings


async def check_rights(connection: Connection, *, always: bool) -> list[Finding]:
    """Report the rights of this principal on the cluster and the topics that it sees.

    If it may do everything and not `always`, that is no finding: there are no access rules then.
    """
    try:
        cluster = await connection.send(DescribeClusterRequest(True), DescribeClusterResponse)
        version = connection.versions.highest(_METADATA_KEY, at_least=_FIRST_WITH_OPERATIONS)
        request = MetadataRequest(None, False, include_topic_authorized_operations=True)
        metadata = await connection.send(request, MetadataResponse, version=version)
    except ClientError:
        return []  # a broker before Kafka 2.8 does not report them
    topics = [topic for topic in metadata.topics if not topic.error_code]
    of_cluster = _operations(cluster.cluster_authorized_operations)
    of_topics = [_operations(topic.topic_authorized_operations) for topic in topics]
    is_all = of_cluster >= set(_OF_CLUSTER) and all(AclOperation.ALTER in one for one in of_topics)
    if cluster.error_code or cluster.cluster_authorized_operations == _UNKNOWN or (is_all and not always):
        return []
    words = "all" if of_cluster >= set(_OF_CLUSTER) else _words(of_cluster)
    text = f"on the cluster this principal has {words}"
    if topics:
        counts = (
            f"{operation.words} {sum(operation in one for one in of_topics)}"
            for operation in (AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE)
        )
        text += f"; of {pluralize(len(topics), 'topic')} that it sees it may {', '.join(counts)}"
    else:
        text += "; it sees no topic"
    return [Finding(Severity.OK if of_cluster or topics else Severity.NOTE, "rights", text)]


def _operations(bits: int) -> set[AclOperation]:
    return set() if bits == _UNKNOWN else {one for one in AclOperation if bits >> one & 1}


def _words(operations: Iterable[AclOperation]) -> str:
    return ", ".join(one.words for one in sorted(operations)) or "none"
