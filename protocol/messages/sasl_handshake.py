"""SaslHandshake (API key 17)."""

from protocol.schema import Message, i16, message, string


@message(key=17, versions=(0, 1))
class SaslHandshakeRequest(Message):
    """SaslHandshakeRequest, versions 0–1."""

    mechanism: string = ""


@message(key=17, versions=(0, 1))
class SaslHandshakeResponse(Message):
    """SaslHandshakeResponse, versions 0–1."""

    error_code: i16 = 0
    mechanisms: list[string] = []
