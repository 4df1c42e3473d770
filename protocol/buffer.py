"""The type of bytes-like objects that decoders accept."""

from __future__ import annotations

Buffer = bytes | bytearray | memoryview
