"""The parts of an X.509 certificate that messages and `doctor` show."""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple

from cryptography import x509
from cryptography.x509.oid import NameOID


class CertificateSummary(NamedTuple):
    """A certificate: names as RFC 4514 text, the hosts that it is for, and its time."""

    subject: str
    issuer: str
    names: tuple[str, ...]
    not_before: dt.datetime
    not_after: dt.datetime  # exclusive


def summary_of(der: bytes) -> CertificateSummary:
    """Parse a certificate in DER. Raises ValueError."""
    certificate = x509.load_der_x509_certificate(der)
    return CertificateSummary(
        certificate.subject.rfc4514_string(),
        certificate.issuer.rfc4514_string(),
        names_of(der),
        certificate.not_valid_before_utc,
        certificate.not_valid_after_utc,
    )


def names_of(der: bytes) -> tuple[str, ...]:
    """The host names and addresses of a certificate; its common name if it has no others (RFC 2818, 3.1).

    Empty if it cannot be parsed.
    """
    try:
        certificate = x509.load_der_x509_certificate(der)
    except ValueError:
        return ()
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        common = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        return tuple(str(one.value) for one in common)
    except ValueError:  # an extension that breaks its format
        return ()
    addresses = (str(one) for one in found.get_values_for_type(x509.IPAddress))
    return (*found.get_values_for_type(x509.DNSName), *addresses)
