"""The certificate of a TLS listener: whether we trust it, for which names it is, and when it expires."""

from __future__ import annotations

from datetime import UTC, datetime

from odradek.client.config import Address
from odradek.client.doctor.finding import Finding, Severity
from odradek.client.errors import ClientError
from odradek.client.network.connection import Connection
from odradek.client.network.tls import peer_certificate
from odradek.client.security.certificate import summary_of
from odradek.protocol.plural import pluralize

_SOON_DAYS = 30


def check_certificate(subject: str, connection: Connection) -> Finding | None:
    """Examine the certificate of an open connection, which is a trusted one; None without TLS."""
    if connection.certificate is None:
        return None
    text, days_left = _described(connection.certificate)
    if days_left < _SOON_DAYS:
        cure = "Renew it: clients cannot connect once it has expired"
        return Finding(Severity.WARNING, subject, f"the certificate expires soon: {text}", cure)
    return Finding(Severity.OK, subject, f"the certificate is trusted: {text}")


async def explain_refusal(
    subject: str, address: Address, error: ClientError, seconds: float, server_name: str
) -> Finding:
    """The finding for a handshake that failed, with what the certificate says. Connects once more."""
    der = await peer_certificate(address, seconds, server_name)
    shown = "" if der is None else f"; it is {_described(der)[0]}"
    return Finding(Severity.PROBLEM, subject, f"{error.cause}{shown}", error.cure)


def _described(der: bytes) -> tuple[str, int]:
    """A certificate in words, and the number of days until it expires; negative if it has."""
    one = summary_of(der)
    now = datetime.now(UTC)
    days_left = (one.not_after - now).days
    if one.not_before > now:
        time = f"not valid before {one.not_before:%Y-%m-%d %H:%M} UTC"
    elif one.not_after <= now:
        time = f"expired since {one.not_after:%Y-%m-%d %H:%M} UTC"
    else:
        time = f"valid until {one.not_after:%Y-%m-%d} ({pluralize(days_left, 'day')})"
    return f"{one.subject}, for {', '.join(one.names) or 'no name'}, issued by {one.issuer}, {time}", days_left
