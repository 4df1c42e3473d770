"""Changes of a suite's copied source."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path


def rewrite(files: Iterable[Path], pattern: str, replacement: str) -> None:
    """Replace a regular expression in the files. Raises `SystemExit` without a match: then the suite has changed."""
    found = 0
    for path in files:
        text, count = re.subn(pattern, replacement, path.read_text())
        if count:
            path.write_text(text)
        found += count
    if not found:
        raise SystemExit(f"there is no {pattern!r} in this version of the suite any more")
