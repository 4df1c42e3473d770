"""The two checksums of the record formats, computed by C libraries on whatever buffer they are given, without a copy.

Record batches (magic 2) carry CRC-32C, the Castagnoli polynomial that processors compute in hardware; messages of
magic 0 and 1 carry the CRC-32 of zip files.
"""

from __future__ import annotations

from zlib import crc32

from crc32c import crc32c

__all__ = ["crc32", "crc32c"]
