"""The text form of uuids: URL-safe base64, 22 characters, no padding (`org.apache.kafka.common.Uuid`)."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode


def uuid_to_text(uuid: bytes) -> str:
    """Return Kafka's text form of a uuid of 16 bytes."""
    return urlsafe_b64encode(uuid).rstrip(b"=").decode()


def uuid_from_text(text: str) -> bytes:
    """Parse Kafka's text form of a uuid into its 16 bytes. Raises ValueError for any other text."""
    uuid = urlsafe_b64decode(text + "==")
    if len(uuid) != 16:
        raise ValueError(f"not a uuid of 16 bytes: {text!r}")
    return uuid
