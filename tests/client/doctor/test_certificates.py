"""The findings of `doctor` about certificates of different ages."""

from __future__ import annotations

from typing import cast

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from odradek.client.doctor.certificates import check_certificate
from odradek.client.doctor.finding import Severity
from odradek.client.network.connection import Connection
from tests.peers.certificates import DAY, Authority

AUTHORITY = Authority()


class Shown:
    """A connection whose peer has shown a certificate."""

    def __init__(self, days: int, names: list[str]) -> None:
        self.certificate = AUTHORITY.issue(
            "broker", names=names, starts=min(0, days) * DAY - DAY, ends=days * DAY
        ).certificate.public_bytes(Encoding.DER)


@pytest.mark.parametrize(
    ("days", "severity", "text"),
    [
        (
            365,
            Severity.OK,
            r"the certificate is trusted: CN=broker, for a\.example, 10\.0\.0\.1, issued by CN=Test CA, valid",
        ),
        (31, Severity.OK, "the certificate is trusted: "),
        (20, Severity.WARNING, r"the certificate expires soon: .* valid until \d{4}-\d\d-\d\d \(19 days\)"),
        (0, Severity.WARNING, "the certificate expires soon: .* expired since .* UTC"),
    ],
)
def test_the_age_of_a_certificate(days: int, severity: Severity, text: str) -> None:
    finding = check_certificate("here", cast("Connection", Shown(days, ["a.example", "10.0.0.1"])))
    assert finding is not None
    assert finding.severity is severity
    import re

    assert re.match(text, finding.text), finding.text
