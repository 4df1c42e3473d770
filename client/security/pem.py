"""PEM text as files and properties hold it.

A PEM text in a property often has no line breaks (Kafka accepts that), but OpenSSL reads lines of 64 characters. Text
outside the blocks, such as the names that OpenSSL prints above a certificate, is dropped.
"""

from __future__ import annotations

import re
from typing import Final

_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----([^-]*)-----END \1-----")
_CERTIFICATES: Final = ("CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE")
_WIDTH: Final = 64


def certificates_in(text: str) -> str:
    """The certificates of a text, as PEM that OpenSSL reads; empty if there are none."""
    return "".join(_rewrapped("CERTIFICATE", body) for kind, body in _BLOCK.findall(text) if kind in _CERTIFICATES)


def keys_in(text: str) -> list[str]:
    """The private keys of a text, as PEM that OpenSSL reads."""
    return [_rewrapped(kind, body) for kind, body in _BLOCK.findall(text) if kind.endswith("PRIVATE KEY")]


def _rewrapped(kind: str, body: str) -> str:
    """A block with lines of 64 characters. One that has headers (`Proc-Type: …`) keeps its lines."""
    if ":" in body:
        return f"-----BEGIN {kind}-----\n{body.strip()}\n-----END {kind}-----\n"
    packed = "".join(body.split())
    lines = [packed[start : start + _WIDTH] for start in range(0, len(packed), _WIDTH)]
    return "\n".join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""])
