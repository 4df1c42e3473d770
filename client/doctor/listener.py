"""The check of one address: name resolution, TCP, and negotiation with a broker.

A name may resolve to several addresses (`localhost`: ::1 and 127.0.0.1). Most clients try them in turn, some only the
first, so the check tries each.
"""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from odradek.client.config import Address
from odradek.client.doctor.finding import Finding, Severity
from odradek.client.doctor.other_peer import Peer, identify
from odradek.client.errors import BrokerUnreachableError, ClientError
from odradek.client.network.connection import Connection, open_connection
from odradek.client.network.transport import Network

_CLIENT_ID = "odradek-doctor"

_PEERS = {
    Peer.TLS: (
        "this is a TLS listener, and the client uses plain text",
        "Use the port of the plain-text listener, or security.protocol=SSL in clients that support it",
    ),
    Peer.HTTP: ("a web server responds, not a Kafka broker", "Use the port of the broker's listener"),
    Peer.OTHER: ("a server responds that is not a Kafka broker", "Use the port of the broker's listener"),
    Peer.CLOSES: (
        "it accepts connections and closes them at the first request",
        "Check that it is a Kafka listener: a proxy or port mapping without a broker does this, too",
    ),
    Peer.SILENT: (
        "it accepts connections and does not respond",
        "Check whether the broker is overloaded or stopped, and whether it is a Kafka listener",
    ),
}


class Examination(NamedTuple):
    """The findings about an address; `connection` is None if no broker responds."""

    findings: list[Finding]
    connection: Connection | None


class Examiner:
    """Examines addresses, with so many `seconds` for each step."""

    def __init__(self, network: Network, seconds: float) -> None:
        self._network = network
        self._seconds = seconds

    async def examine(self, address: Address, subject: str) -> Examination:
        """Resolve, connect and negotiate; `subject` is the address in the findings."""
        try:
            resolved = await self._resolve(address)
        except (OSError, TimeoutError) as error:
            reason = getattr(error, "strerror", None) or "no response from the name server in time"
            cure = "Check the spelling, /etc/hosts and DNS on this machine"
            text = f"{address.host} cannot be resolved ({reason})"
            return Examination([Finding(Severity.PROBLEM, subject, text, cure)], None)
        began = time.monotonic()
        attempts = await asyncio.gather(*(self._open(one) for one in resolved))
        milliseconds = (time.monotonic() - began) * 1000
        connections = [one for one in attempts if isinstance(one, Connection)]
        failures = {place: one for place, one in zip(resolved, attempts, strict=True) if isinstance(one, ClientError)}
        for spare in connections[1:]:
            spare.close()
        if not connections:
            return Examination([await self._no_broker(subject, failures)], None)
        findings = [Finding(Severity.OK, subject, f"a Kafka broker responds ({milliseconds:.0f} ms)")]
        if failures:
            findings.append(_half_reachable(subject, address, failures, connections[0]))
        return Examination(findings, connections[0])

    async def _resolve(self, address: Address) -> list[Address]:
        async with asyncio.timeout(self._seconds):
            found = await asyncio.get_running_loop().getaddrinfo(*address)
        return [Address(host, address.port) for host in dict.fromkeys(str(one[4][0]) for one in found)]

    async def _open(self, address: Address) -> Connection | ClientError:
        try:
            return await open_connection(
                self._network,
                address,
                str(address),
                client_id=_CLIENT_ID,
                connect_timeout=self._seconds,
                request_timeout=self._seconds,
            )
        except ClientError as error:
            return error

    async def _no_broker(self, subject: str, failures: dict[Address, ClientError]) -> Finding:
        """Find the reason why no broker responds at any of the addresses."""
        connected = [place for place, error in failures.items() if not isinstance(error, BrokerUnreachableError)]
        if connected:
            text, cure = _PEERS[await identify(connected[0], self._seconds)]
            return Finding(Severity.PROBLEM, subject, text, cure)
        causes = ", ".join(f"{place}: {error.cause}" for place, error in failures.items())
        if all("refused" in error.cause for error in failures.values()):
            cure = "Check that the broker runs with this port, and does not listen on its own loopback only"
        else:
            cure = "Check the network and firewalls between this machine and the broker"
        return Finding(Severity.PROBLEM, subject, f"no connection ({causes})", cure)


def _half_reachable(
    subject: str, address: Address, failures: dict[Address, ClientError], connection: Connection
) -> Finding:
    places = ", ".join(f"{place.host} ({error.cause})" for place, error in failures.items())
    return Finding(
        Severity.WARNING,
        subject,
        f"{address.host} also resolves to {places}",
        f"Some clients try only the first address: make the broker listen there, too, or use {connection.name}",
    )
