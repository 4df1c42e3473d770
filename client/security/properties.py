"""Settings of TLS and SASL as properties of Kafka's clients: names with dots, values as text.

Files of Kafka's tools and options of Spark's connector have them. Some of their properties name what this client does
anyway (`IMPLIED`): they are accepted with those values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from odradek.client.security.settings import SecurityKeywords

_OAUTH_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer."
IMPLIED: Final[dict[str, tuple[str, ...]]] = {
    "sasl.login.callback.handler.class": (
        f"{_OAUTH_PACKAGE}OAuthBearerLoginCallbackHandler",
        f"{_OAUTH_PACKAGE}secured.OAuthBearerLoginCallbackHandler",
        f"{_OAUTH_PACKAGE}internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler",
    ),
    "ssl.protocol": ("TLS", "TLSv1.2", "TLSv1.3"),
}
NAMES: Final = {
    keyword.replace("_", "."): keyword
    for keyword in SecurityKeywords.__annotations__
    if keyword != "sasl_oauth_token_provider"  # a function
}
"""The keyword of each property."""


def settings_of(properties: Mapping[str, str]) -> SecurityKeywords:
    """The keywords of properties that are all in `NAMES` or implied. Checks no values."""
    settings: dict[str, Any] = {}
    for name, text in properties.items():
        if text.strip() in IMPLIED.get(name, ()):
            continue
        keyword, value = NAMES[name], text.strip()
        settings[keyword] = [one.strip() for one in value.split(",")] if keyword == "ssl_enabled_protocols" else value
    return cast("SecurityKeywords", settings)
