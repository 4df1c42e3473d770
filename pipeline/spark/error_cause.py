"""The line of an error of Spark that names the cause; its other lines repeat tracebacks of Python and Java."""

from __future__ import annotations

from typing import Final

_CALLING: Final = "An error occurred while calling"  # the prefix of Py4J for exceptions of the JVM


def cause_of(error: Exception) -> str:
    """Return the cause in one line."""
    return cause_of_text(str(error)) or type(error).__name__


def cause_of_text(text: str) -> str:
    """Return the cause in the text of an exception, "" if the text is empty: the last error of a worker, if any."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    starts = [number for number, line in enumerate(lines) if "Traceback (most recent call" in line]
    if starts:
        for line in lines[starts[-1] + 1 :]:
            if not line.startswith((" ", "\t")):
                return line.strip()
    if lines[0].startswith(_CALLING) and len(lines) > 1:
        return lines[1].removeprefix(": ")
    return lines[0]
