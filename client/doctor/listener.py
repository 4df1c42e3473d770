"""The check of one address: name resolution, TCP, TLS, negotiation with a broker, and authentication.

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
from odradek.client.errors import (
    AuthenticationFailedError,
    BrokerUnreachableError,
    ClientError,
    ConfigurationError,
    TlsError,
)
from odradek.client.network.connection import Connection, open_connection
from odradek.client.network.connections import authenticator_of
from odradek.client.network.transport import NO_NAME, Network, TcpNetwork
from odradek.client.security.settings import SecuritySettings

_CLIENT_ID = "odradek-doctor"

_PEERS = {
    Peer.TLS: (
        "this is a TLS listener, and the client uses plain text",
        "Use the port of the plain-text listener, or set security.protocol to SSL, or SASL_SSL with a user",
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
    """Examines addresses, with so many `seconds` for each step, as a client with these settings connects."""

    def __init__(self, network: Network, seconds: float, security: SecuritySettings | None = None) -> None:
        self.security = security or SecuritySettings()
        self._network = network
        self._seconds = seconds
        self._authenticator = authenticator_of(self.security)

    async def examine(self, address: Address, subject: str) -> Examination:
        """Resolve, connect and negotiate; `subject` is the address in the findings."""
        try:
            resolved = await self._resolve(address)
        except (OSError, ValueError) as error:  # TimeoutError is an OSError
            in_time = "no response from the name server in time"
            reason = NO_NAME if isinstance(error, ValueError) else error.strerror or in_time
            cure = "Check the spelling, /etc/hosts and DNS on this machine"
            text = f"{address.host} cannot be resolved ({reason})"
            return Examination([Finding(Severity.PROBLEM, subject, text, cure)], None)
        began = time.monotonic()
        network = TcpNetwork(self.security, address.host) if self.security.uses_tls else self._network
        attempts = await asyncio.gather(*(self._open(network, one) for one in resolved))
        milliseconds = (time.monotonic() - began) * 1000
        connections = [one for one in attempts if isinstance(one, Connection)]
        failures = {place: one for place, one in zip(resolved, attempts, strict=True) if isinstance(one, ClientError)}
        for spare in connections[1:]:
            spare.close()
        if not connections:
            return Examination([await self._no_broker(subject, address.host, failures)], None)
        findings = [Finding(Severity.OK, subject, f"a Kafka broker responds ({milliseconds:.0f} ms)")]
        findings += await self._security_findings(subject, address, network, connections[0])
        if failures:
            findings.append(_half_reachable(subject, address, failures, connections[0]))
        return Examination(findings, connections[0])

    async def _resolve(self, address: Address) -> list[Address]:
        async with asyncio.timeout(self._seconds):
            found = await asyncio.get_running_loop().getaddrinfo(*address)
        return [Address(host, address.port) for host in dict.fromkeys(str(one[4][0]) for one in found)]

    async def mechanisms(self, address: Address) -> list[str] | None:
        """The SASL mechanisms of a listener, or None if it has none or does not answer."""
        from odradek.client.doctor.authentication import offered_mechanisms

        network = TcpNetwork(self.security, address.host) if self.security.uses_tls else self._network
        return await offered_mechanisms(network, address, _CLIENT_ID, self._seconds)

    async def _security_findings(
        self, subject: str, address: Address, network: Network, connection: Connection
    ) -> list[Finding]:
        findings = []
        if self.security.uses_tls:
            from odradek.client.doctor.certificates import check_certificate

            if (certificate := check_certificate(subject, connection)) is not None:
                findings.append(certificate)
        if self.security.uses_sasl:
            from odradek.client.doctor.authentication import describe_authentication, offered_mechanisms

            offered = await offered_mechanisms(network, address, _CLIENT_ID, self._seconds)
            findings += describe_authentication(subject, address.host, self.security, offered)
        return findings

    async def _open(self, network: Network, address: Address) -> Connection | ClientError:
        try:
            return await open_connection(
                network,
                address,
                str(address),
                client_id=_CLIENT_ID,
                connect_timeout=self._seconds,
                request_timeout=self._seconds,
                authenticator=self._authenticator,
            )
        except ConfigurationError:
            raise
        except ClientError as error:
            return error

    async def _no_broker(self, subject: str, host: str, failures: dict[Address, ClientError]) -> Finding:
        """Find the reason why no broker responds at any of the addresses."""
        for place, error in failures.items():
            if isinstance(error, TlsError):
                from odradek.client.doctor.certificates import explain_refusal

                return await explain_refusal(subject, place, error, self._seconds, host)
            if isinstance(error, AuthenticationFailedError):
                return Finding(Severity.PROBLEM, subject, f"{error.tried}: {error.cause}", error.cure)
            if self.security.uses_tls and not isinstance(error, BrokerUnreachableError):
                return Finding(Severity.PROBLEM, subject, error.cause, error.cure)
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
