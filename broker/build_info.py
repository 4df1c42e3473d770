"""Which Odradek this is: its version, and whether its hottest modules are C extensions.

The same modules exist twice where they were compiled (setup.py lists them): as Python files, and as extensions, which
go before the files when they are imported. Nothing but the speed differs. Who reports a speed should say which it was.
"""

from __future__ import annotations

from odradek.broker.storage import log


def version() -> str:
    """The version that is installed; `(not installed)` if this runs from the source tree alone."""
    from importlib import metadata  # 11 ms, of which a start needs none

    try:
        return metadata.version("odradek")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def is_compiled() -> bool:
    """Whether what every request goes through is compiled: all of it is, or nothing."""
    return not log.__file__.endswith(".py")
