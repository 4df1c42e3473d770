"""The security options of Spark's connector (TLS, SASL), which are refused until the bundled client has them.

An option that only confirms the absence of security, `kafka.security.protocol=PLAINTEXT`, is accepted. Values are not
repeated in the error: some are passwords.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PROTOCOL: Final = "kafka.security.protocol"
_PREFIXES: Final = ("kafka.security.", "kafka.ssl.", "kafka.sasl.")


def check_security(options: Mapping[str, str]) -> None:
    """Raise ValueError if options, by lower-case name, ask for TLS or SASL."""
    refused = [
        name
        for name, value in options.items()
        if name.startswith(_PREFIXES) and not (name == PROTOCOL and value.strip().upper() == "PLAINTEXT")
    ]
    if refused:
        raise ValueError(
            f'{", ".join(sorted(refused))}: the bundled client has neither TLS nor SASL yet, so format("broker") '
            'connects to PLAINTEXT listeners only. Use such a listener, or format("kafka") with Spark\'s own connector'
        )
