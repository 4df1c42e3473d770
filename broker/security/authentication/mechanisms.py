"""The mechanisms of a listener: their settings, and the exchanges that they create."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from odradek.broker.randomness import Randomness
from odradek.broker.security.authentication.exchange import Exchange
from odradek.broker.security.authentication.oauthbearer_exchange import OauthBearerExchange
from odradek.broker.security.authentication.plain_exchange import PlainExchange
from odradek.broker.security.authentication.scram_exchange import FindCredential, ScramExchange
from odradek.broker.security.authentication.tokens.validator import TokenValidator
from odradek.broker.security.authentication.unknown_users import UnknownUsers
from odradek.protocol.sasl.oauthbearer import OAUTHBEARER
from odradek.protocol.sasl.plain import PLAIN
from odradek.protocol.sasl.scram import ScramMechanism


class Plain(msgspec.Struct, frozen=True):
    """PLAIN, with the passwords of its users: the options `user_<name>` of Kafka's `PlainLoginModule`."""

    passwords: Mapping[str, str]

    def __repr__(self) -> str:
        return "Plain(hidden)"

    @property
    def name(self) -> str:
        return PLAIN

    def exchange(self) -> Exchange:
        return PlainExchange(self.passwords)


class Scram(msgspec.Struct, frozen=True):
    """One SCRAM mechanism. `find_credential` looks a user up when its client sends its first message.

    `unknown_users` is called for each exchange, because its secret is in the metadata, which are loaded after this
    object is created.
    """

    mechanism: ScramMechanism
    find_credential: FindCredential
    unknown_users: Callable[[], UnknownUsers]
    randomness: Randomness

    @property
    def name(self) -> str:
        return self.mechanism.name

    def exchange(self) -> Exchange:
        return ScramExchange(self.mechanism, self.find_credential, self.unknown_users(), self.randomness)


class OauthBearer(msgspec.Struct, frozen=True):
    """OAUTHBEARER, with the validator of its tokens."""

    validator: TokenValidator

    @property
    def name(self) -> str:
        return OAUTHBEARER

    def exchange(self) -> Exchange:
        return OauthBearerExchange(self.validator)


class Mechanisms:
    """The mechanisms that are enabled on a listener, in the order of `sasl.enabled.mechanisms`."""

    def __init__(self, settings: Sequence[Plain | Scram | OauthBearer]) -> None:
        self._settings = {each.name: each for each in settings}

    @property
    def names(self) -> list[str]:
        """The names that SaslHandshake lists."""
        return list(self._settings)

    def __contains__(self, name: str) -> bool:
        return name in self._settings

    def exchange(self, name: str) -> Exchange:
        """Create the exchange of one client. Raises KeyError for a mechanism that is not enabled."""
        return self._settings[name].exchange()
