"""The version of Odradek, and whether its hot modules are C extensions.

Compiled modules (setup.py lists them) exist twice: as Python files and as extensions, which Python imports first. They
differ in speed only, so a report of a speed should name which ran.
"""

from __future__ import annotations

from odradek.broker.storage import log


def version() -> str:
    """The installed version; `(not installed)` if this runs from the source tree alone."""
    from importlib import metadata  # takes 11 ms, and a start does not need it

    try:
        return metadata.version("odradek")
    except metadata.PackageNotFoundError:
        return "(not installed)"


def is_compiled() -> bool:
    """Return whether the hot modules are compiled: either all of them are, or none."""
    return not log.__file__.endswith(".py")
