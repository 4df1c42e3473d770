"""The Host header of a request, as a defence against DNS rebinding.

A web page that a person opens may send requests to any address that its own host name leads to, and the page's owner
can let that name lead to 127.0.0.1 a moment later: then the browser takes our answers for the page's own and lets it
read them. The Host header still has the page's name, so a server of the loopback interface, which only this machine's
programs should reach, refuses names that cannot be its own:

| Host | |
|---|---|
| none, an IP address, a name without a dot or under `.localhost`, the name in `metrics.host`; any port | served |
| any other | 403 |

A name without a dot is `localhost`, or one that this machine or its network gives: nobody owns one in the public DNS.

A server that listens elsewhere serves every name: it was opened to a network, where it has names that it cannot know
(of a container, of a service in Kubernetes), and whoever reaches that network needs no browser of another's.
"""

from __future__ import annotations

from ipaddress import ip_address

_LOCAL_DOMAIN = ".localhost"


def is_loopback(address: str) -> bool:
    """Whether an IP address, as a socket has it, is of the loopback interface."""
    return ip_address(address.partition("%")[0]).is_loopback


def is_local_host(host: str | None, own_name: str) -> bool:
    """Whether a Host header, None if there was none, can be meant for a server of the loopback interface.

    `own_name` is the name or address that the server was told to listen on.
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
