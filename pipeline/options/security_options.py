"""The security options of Spark's connector: `kafka.security.protocol`, `kafka.ssl.*`, `kafka.sasl.*`.

They are those of Kafka's clients (docs/client.md). Key and trust stores are files that the driver and every worker can
read, or PEM text. An option that the bundled client does not have is refused, not ignored: its user expects a
connection with more security than there would be. Values are never repeated in an error: some are passwords.

Spark shows options of a source written in Python in no plan, event log or progress report (a test looks for them). It
stores those of CREATE TABLE in its catalog, where everybody sees them, so secrets are refused there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from odradek.client.security.properties import IMPLIED, NAMES, settings_of
from odradek.client.security.settings import SECRETS, SecurityKeywords, SecuritySettings

_PREFIXES: Final = ("kafka.security.", "kafka.ssl.", "kafka.sasl.")

SECRET_OPTIONS: Final = frozenset(f"kafka.{name}" for name, keyword in NAMES.items() if keyword in SECRETS)
"""The options whose values are shown nowhere."""


def security_settings(options: Mapping[str, str]) -> SecurityKeywords:
    """Return the settings of the client for options by lower-case name.

    Raises ValueError for an option that the client does not have, and for values that make no sense.
    """
    given = {name.removeprefix("kafka."): value for name, value in options.items() if name.startswith(_PREFIXES)}
    refused = sorted(
        f"kafka.{name}"
        for name, value in given.items()
        if name not in NAMES and value.strip() not in IMPLIED.get(name, ())
    )
    if refused:
        raise ValueError(
            f"{', '.join(refused)}: the bundled client has no such setting, or not this value; docs/client.md lists "
            "those of TLS and SASL. format(\"kafka\") with Spark's own connector has all that Java's client has"
        )
    settings = settings_of(given)
    SecuritySettings(**settings)
    return settings


def is_security_option(name: str) -> bool:
    """Whether an option, by lower-case name, is one of these."""
    return name.startswith(_PREFIXES)


def check_not_stored(options: Mapping[str, str]) -> None:
    """Raise ValueError if the options of CREATE TABLE have a secret: Spark would store it in its catalog."""
    secrets = sorted(name for name in (one.lower() for one in options) if name in SECRET_OPTIONS)
    if secrets:
        raise ValueError(
            f"{', '.join(secrets)}: the catalog would show the value to everybody; read with "
            'spark.read.format("broker") in place of a table, or use a key store without a password'
        )
