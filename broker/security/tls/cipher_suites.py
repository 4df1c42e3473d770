"""Cipher suites: Java's names, which `ssl.cipher.suites` has, in the words of OpenSSL.

| Java's name | OpenSSL's | of |
|---|---|---|
| TLS_AES_256_GCM_SHA384 | the same | TLS 1.3 |
| TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 | ECDHE-RSA-AES256-GCM-SHA384 | TLS 1.2 |

`choose` splits the list by version. OpenSSL takes its TLS 1.3 suites by a call that Python has from 3.15 on; without
it, either all of them are on or the version is off. So a list with only some of them is refused, and a list without any
turns TLS 1.3 off, as it does in Java.

Suites that do not encrypt, do not authenticate or can be broken are refused by name, whatever the OpenSSL supports.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from odradek.broker.security.tls.settings import TlsSettingsError

_EXCHANGES = {"ECDHE_ECDSA": "ECDHE-ECDSA-", "ECDHE_RSA": "ECDHE-RSA-", "RSA": ""}
_CIPHERS = {
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    "AES_256_CBC_SHA384": "AES256-SHA384",
    "AES_256_CBC_SHA256": "AES256-SHA256",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_CBC_SHA": "AES128-SHA",
}
TLS_1_3_SUITES = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
"""Those that OpenSSL turns on by itself, in its order."""
TLS_1_2_SUITES = {
    f"TLS_{exchange}_WITH_{cipher}": openssl + name
    for exchange, openssl in _EXCHANGES.items()
    for cipher, name in _CIPHERS.items()
}
"""Java's name: OpenSSL's name. Some of them exist in neither library; see `choose`."""
_NOT_A_SUITE = "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"  # a signal that Java lists among the suites; OpenSSL always sends it
_BROKEN = re.compile(r"_(NULL|anon|EXPORT|EXPORT1024|RC4|RC2|DES|DES40|3DES|MD5|KRB5)(_|$)", re.IGNORECASE)
_DIFFIE_HELLMAN = re.compile(r"^(TLS|SSL)_(DHE|DH)_")


class Suites(NamedTuple):
    """The suites of a listener, in the order of the list: OpenSSL's names of TLS 1.2, those of TLS 1.3."""

    tls_1_2: tuple[str, ...]
    tls_1_3: tuple[str, ...]


def choose(names: Iterable[str], supported: frozenset[str]) -> Suites:
    """Translate `ssl.cipher.suites`; `supported` are the names that this OpenSSL has. Raises TlsSettingsError."""
    older: list[str] = []
    newer: list[str] = []
    for name in names:
        if name == _NOT_A_SUITE:
            continue
        if _BROKEN.search(name):
            raise _refusal(name, "it protects nothing that cannot be read or changed on the way: remove it")
        if _DIFFIE_HELLMAN.match(name):
            raise _refusal(name, "there is no DSS, and no Diffie-Hellman but that of elliptic curves: use TLS_ECDHE_…")
        translated = name if name in TLS_1_3_SUITES else TLS_1_2_SUITES.get(name)
        if translated is None or translated not in supported:
            raise _refusal(name, _hint(name))
        (newer if name in TLS_1_3_SUITES else older).append(translated)
    if not older and not newer:
        raise TlsSettingsError("ssl.cipher.suites names no suite: leave it empty for the default ones")
    return Suites(tuple(dict.fromkeys(older)), tuple(dict.fromkeys(newer)))


def _refusal(name: str, why: str) -> TlsSettingsError:
    return TlsSettingsError(f"ssl.cipher.suites: {name}: {why}")


def _hint(name: str) -> str:
    java = next((java for java, openssl in TLS_1_2_SUITES.items() if openssl == name), None)
    if java is not None:
        return f"write it as Java does: {java}"
    return "this OpenSSL has no such suite: remove it, or leave the list empty for the default ones"
