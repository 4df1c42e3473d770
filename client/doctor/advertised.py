"""The addresses that brokers advertise: clients connect to these, not to the bootstrap address."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from odradek.client.config import Address
from odradek.client.doctor.finding import Finding, Severity
from odradek.client.doctor.listener import Examiner
from odradek.protocol.messages.metadata import MetadataResponse

_ONLY_HERE = ("localhost", "127.0.0.1", "::1")
_NOWHERE = ("0.0.0.0", "::")  # noqa: S104 - compared, not listened on


async def check_advertised(
    examiner: Examiner, metadata: MetadataResponse, bootstrap: Mapping[Address, bool]
) -> list[Finding]:
    """Examine the advertised address of each broker; `bootstrap` says which bootstrap servers responded."""
    brokers = {one.node_id: Address(one.host, one.port) for one in metadata.brokers}
    if not brokers:
        return [Finding(Severity.PROBLEM, "cluster", "the metadata contain no broker", "Is a broker still starting?")]
    spare = [place for place, answered in bootstrap.items() if answered and place not in brokers.values()]
    found = await asyncio.gather(
        *(_check(examiner, node_id, address, bootstrap, spare) for node_id, address in sorted(brokers.items()))
    )
    return [finding for of_broker in found for finding in of_broker]


async def _check(
    examiner: Examiner, node_id: int, address: Address, bootstrap: Mapping[Address, bool], spare: Sequence[Address]
) -> list[Finding]:
    """`spare` are bootstrap servers that responded and that no broker advertises; one may be this broker's."""
    if bootstrap.get(address):
        return []  # examined already, as a bootstrap server
    subject = f"broker {node_id}, advertised as {address}"
    example = f", such as {spare[0]}, which has just responded" if spare else ""
    cure = f"Set advertised.listeners of broker {node_id} to what clients can reach{example}"
    or_reach = f"{cure}, or make {address} reachable from this machine"
    if address.host in _NOWHERE:
        return [Finding(Severity.PROBLEM, subject, "clients cannot connect to this address", cure)]
    findings, connection = await examiner.examine(address, subject)
    if connection is None:
        return [finding._replace(cure=or_reach) for finding in findings]
    connection.close()
    if address.host in _ONLY_HERE and not any(place.host in _ONLY_HERE for place in bootstrap):
        text = "clients on other machines will try to connect to their own machine"
        findings.append(Finding(Severity.WARNING, subject, text, cure))
    return findings
