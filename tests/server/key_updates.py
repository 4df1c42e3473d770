"""Key updates of TLS 1.3 (RFC 8446, 4.6.3), which Python's `ssl` cannot send: OpenSSL is called past it."""

from __future__ import annotations

import _ssl
import ctypes
import ssl
from typing import Final

_OPENSSL: Final = ctypes.CDLL(_ssl.__file__)
_OPENSSL.SSL_key_update.argtypes = [ctypes.c_void_p, ctypes.c_int]
_OPENSSL.SSL_do_handshake.argtypes = [ctypes.c_void_p]
_SSL_POINTER: Final = 3 * ctypes.sizeof(ctypes.c_void_p)
"""Where an object of `_ssl` has its `SSL *`: behind its count of references, its type and its socket."""


def send_key_update(client: ssl.SSLSocket | ssl.SSLObject, *, is_answered: bool) -> bool:
    """Send a key update, which the peer answers by another if so asked; return False if the kernel is full."""
    pointer = ctypes.c_void_p.from_address(id(client._sslobj) + _SSL_POINTER).value  # type: ignore[union-attr]  # noqa: SLF001
    assert _OPENSSL.SSL_key_update(pointer, int(is_answered)) == 1
    return bool(_OPENSSL.SSL_do_handshake(pointer) == 1)
