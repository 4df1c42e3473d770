"""The health check of a container: `python -m odradek.broker.health_check`.

It asks `/readyz` at the address that the broker of this container has, whatever sets that: the command line of process
1 has the file and the overrides from which `metrics.host`, `metrics.port` and TLS follow. The exit status is 0 if
clients can be served. Without a fixed `metrics.port` nothing can be asked: then it is 0 while the container runs.
"""

from __future__ import annotations

import argparse
import ssl
import sys
import urllib.request
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Final

from odradek.broker.command_line import add_config, fail
from odradek.broker.config import BrokerConfig, ConfigError

_COMMAND_LINE: Final = Path("/proc/1/cmdline")
_TIMEOUT_SECONDS: Final = 2.0
_ALL_ADDRESSES: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - nothing is bound


def main(words: Sequence[str]) -> int:
    """Check the broker that a command line has started, and return the exit status."""
    parser = argparse.ArgumentParser(add_help=False)
    add_config(parser)
    begin = words.index("broker") + 1 if "broker" in words else 0  # after an init process and its "--", if any
    options, _ = parser.parse_known_args(words[begin:])
    try:
        config = BrokerConfig.load(options.config, dict(options.override))
    except ConfigError as error:
        return fail(error.problems)
    if config.metrics_port <= 0:
        sys.stdout.write(f"not checked: metrics.port is {config.metrics_port}, and needs a number above 0\n")
        return 0
    host = _ALL_ADDRESSES.get(config.metrics_host)
    if host is None:
        host = f"[{config.metrics_host}]" if ":" in config.metrics_host else config.metrics_host
    scheme = "http" if config.metrics_ssl_keystore_location is None else "https"
    url = f"{scheme}://{host}:{config.metrics_port}/readyz"
    context = ssl.create_default_context()
    context.check_hostname = False  # the broker's certificate need not name this address
    context.verify_mode = ssl.CERT_NONE  # and nothing secret is sent
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(url, timeout=_TIMEOUT_SECONDS) as response:
            sys.stdout.write(response.read().decode())
    except (OSError, HTTPException) as error:
        return fail([f"{url}: {error}"])
    return 0


if __name__ == "__main__":
    sys.exit(main(_COMMAND_LINE.read_bytes().decode(errors="surrogateescape").split("\0")))
