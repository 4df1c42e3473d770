"""Terminals and colours: colours and progress appear on terminals only, and colours only without NO_COLOR."""

from __future__ import annotations

import os
from typing import TextIO

BOLD = "1"
RED = "31"
GREEN = "32"
YELLOW = "33"


def is_terminal(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def paint(text: str, style: str, stream: TextIO) -> str:
    """Return `text` in a style (above, or "" for none) if `stream` shows colours. NO_COLOR: https://no-color.org."""
    if not style or not is_terminal(stream) or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[{style}m{text}\x1b[0m"
