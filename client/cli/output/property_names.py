"""The names of settings in the client's messages, as commands accept them: `security_protocol` is `security.protocol`.

Programs write settings with underscores, and so do the client's errors; `--command-config` and `--command-property`
have Kafka's properties.
"""

from __future__ import annotations

import re

from odradek.client.errors import ClientError
from odradek.client.setting_names import OTHER_NAMES

_FLAGS = {"bootstrap_servers": "--bootstrap-server"}
_OTHER_PROPERTIES = {"max_in_flight": "max.in.flight.requests.per.connection"}
_AS_TYPED = {name: name.replace("_", ".") for name in OTHER_NAMES if "_" in name} | _OTHER_PROPERTIES | _FLAGS
_SETTING = re.compile(rf"(?<![\w./-])(?:{'|'.join(sorted(_AS_TYPED, key=len, reverse=True))})(?![\w/-]|\.\w)")


def with_property_names(text: str) -> str:
    """Return a message of the client with the settings named as properties, or as the flags that commands have."""
    return _SETTING.sub(lambda found: _AS_TYPED[found[0]], text)


def error_text(error: BaseException) -> str:
    """Return the message of an error; of one of the client with the settings named as properties.

    Its place stays as it is: a topic may have the name of a setting.
    """
    text = str(error)
    if not isinstance(error, ClientError):
        return text
    place = error.summary.removesuffix(error.cause)
    return place + with_property_names(text.removeprefix(place))
