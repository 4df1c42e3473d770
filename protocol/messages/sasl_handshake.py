"""SaslHandshake (API key 17): a client on a SASL listener names the mechanism by which it will authenticate (KIP-43).

Only ApiVersions may precede it.
"""

from odradek.protocol.schema import Message, i16, message, string


@message(key=17, versions=(0, 1))
class SaslHandshakeRequest(Message):
    """Versions 0–1.

    After v0 the tokens of the mechanism follow without a header, each after a size of 4 bytes; after v1
    SaslAuthenticate carries them (KIP-152). It stays without a flexible version, because clients up to 2.4 negotiate
    its version wrongly (KAFKA-9577).
    """

    mechanism: string = ""  # `PLAIN`, `SCRAM-SHA-256`, `OAUTHBEARER`, …


@message(key=17, versions=(0, 1))
class SaslHandshakeResponse(Message):
    """Versions 0–1."""

    error_code: i16 = 0  # UNSUPPORTED_SASL_MECHANISM (33), ILLEGAL_SASL_STATE (34)
    mechanisms: list[string] = []  # those enabled here
