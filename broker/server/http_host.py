"""The check of the Host header, as a defence against DNS rebinding.

A web page in a browser may send requests to any address that its own host name resolves to. The page's owner can make
that name resolve to 127.0.0.1 a moment later: then the browser treats our answers as the page's own and allows the page
to read them. The Host header still has the page's name. So a server on the loopback interface, which only programs of
this machine should reach, refuses names that cannot be its own:

| Host | |
|---|---|
| none, an IP address, a name without a dot or under `.localhost`, the name in `metrics.host`; any port | served |
| any other | 403 |

A name without a dot is `localhost` or is defined by this machine or its network: no attacker owns one in the public
DNS.

A server that listens elsewhere serves every name. It was opened to a network, where it has names that it does not know
(of a container, of a service in Kubernetes), and an attacker in that network needs no browser.
"""

from __future__ import annotations

from ipaddress import ip_address

_LOCAL_DOMAIN = ".localhost"


def is_local_host(host: str | None, own_name: str) -> bool:
    """Return whether a Host header (None if there is none) can name a server on the loopback interface.

    `own_name` is the configured name or address that the server listens on.
    """
    if not host:
        return True
    if host.startswith("["):
        name, bracket, _ = host[1:].partition("]")
        return bool(bracket) and _is_address(name)
    name = host.partition(":")[0].rstrip(".").lower()
    is_local = "." not in name or name.endswith(_LOCAL_DOMAIN)
    return is_local or name == own_name.rstrip(".").lower() or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
