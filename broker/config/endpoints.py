"""Listener addresses: `NAME://host:port`, as in `listeners` and `advertised.listeners`."""

from __future__ import annotations

import ipaddress
import re
from ipaddress import ip_address
from typing import NamedTuple

from odradek.broker.config.types import InvalidValueError, list_of

_ENDPOINT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)://(?:\[(?P<ipv6>[^\]]*)\]|(?P<host>[^:\[\]]*)):(?P<port>-?[0-9]+)\Z")
_MAX_PORT = 65_535


class Endpoint(NamedTuple):
    """One listener's address. An empty host means every interface; port 0 means any free one."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"

    @property
    def is_name(self) -> bool:
        """Whether the host is a name, and neither an IP address nor every interface."""
        try:
            ipaddress.ip_address(self.host)
        except ValueError:
            return bool(self.host)
        return False


def parse_endpoint(text: str) -> Endpoint:
    """Parse one address. Raises `InvalidValueError`. Listener names become upper case, as in Kafka."""
    match = _ENDPOINT.match(text)
    if match is None:
        raise InvalidValueError(f"{text!r} is not of the form NAME://host:port")
    port = int(match["port"])
    if not 0 <= port <= _MAX_PORT:
        raise InvalidValueError(f"{text!r} has a port outside 0 to {_MAX_PORT}")
    return Endpoint(match["name"].upper(), match["ipv6"] or match["host"] or "", port)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a host: `localhost`, or an IP address of the loopback interface.

    An empty host is every interface. Another name may have any address.
    """
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


ENDPOINTS = list_of(parse_endpoint)
