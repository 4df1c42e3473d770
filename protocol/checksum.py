"""The two checksums of the record formats, computed by C libraries without a copy of the buffer.

Record batches (magic 2) carry CRC-32C, the Castagnoli polynomial that processors compute in hardware; messages of
magic 0 and 1 carry the CRC-32 of zip files.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from zlib import crc32

from odradek.protocol.buffer import Buffer

__all__ = ["crc32", "crc32c"]


def _load_crc32c() -> Callable[[Buffer], int]:
    """Return the function of the extension module of the package `crc32c`, without importing the package if possible.

    The package contains a command, and imports the modules of e-mail, zip files and arguments for it: 3 MB, a tenth of
    the memory of a client, and 15 ms of its start.
    """
    package = PathFinder.find_spec("crc32c")
    spec = package and PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
    if spec is None or spec.loader is None:
        from crc32c import crc32c as of_package

        return of_package
    extension = module_from_spec(spec)
    spec.loader.exec_module(extension)
    loaded: Callable[[Buffer], int] = extension.crc32c
    return loaded


crc32c = _load_crc32c()
