"""Checks of the arguments of faults. A mistake is a ValueError, whose sentence has the nearest right name."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterable
from difflib import get_close_matches

from odradek.broker.apis.table import ROWS
from odradek.protocol.api import NAMES, Api, by_key
from odradek.protocol.errors import ErrorCode

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module


def api_named(name: str) -> Api:
    """Return the API of this name, which the broker must serve."""
    served = {NAMES[key]: key for key in ROWS}
    key = served.get(name)
    if key is not None:
        return by_key(key)
    if name in NAMES.values():
        raise ValueError(f"this broker does not serve the API {name}")
    raise ValueError(f"there is no API {name!r}{_instead(name, served)}")


def error_named(error: str | ErrorCode) -> ErrorCode:
    """Return the error code of this name, which must not be NONE."""
    name = error.name if isinstance(error, ErrorCode) else error
    if name not in ErrorCode.__members__:
        raise ValueError(f"there is no error {name!r}{_instead(name, ErrorCode.__members__)}")
    code = ErrorCode[name]
    if code is ErrorCode.NONE:
        raise ValueError("NONE is no error, so no request can fail with it")
    return code


def errno_named(error: object) -> int:
    """Return the number of an error of the operating system, given as `errno.EIO` or as its name."""
    names = errno.errorcode
    if isinstance(error, str):
        by_name = {name: number for number, name in names.items()}
        if error not in by_name:
            raise ValueError(f"there is no error {error!r} of the operating system{_instead(error, by_name)}")
        return by_name[error]
    if isinstance(error, bool) or not isinstance(error, int) or error not in names:
        raise ValueError(f"the operating system has no error {error!r}")
    return error


def one_of(name: str, value: str, choices: Iterable[str]) -> str:
    """Return `value`, which must be one of the choices."""
    known = tuple(choices)
    if value not in known:
        raise ValueError(f"{name} is {value!r}, not one of {', '.join(known)}{_instead(value, known)}")
    return value


def whole_number(name: str, value: object, least: int, most: int | None = None) -> int:
    """Return `value`, which must be an integer of at least `least`, and at most `most` if that is given."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
    if most is not None and value > most:
        raise ValueError(f"{name} must be a whole number of at most {most}, not {value!r}")
    return value


def duration(name: str, value: object) -> float:
    """Return `value`, which must be a finite number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= sys.float_info.max:
        raise ValueError(f"{name} must be a number that is not negative, not {value!r}")
    return value


def share(name: str, value: object) -> float:
    """Return `value`, which must be above 0 and at most 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise ValueError(f"{name} must be above 0 and at most 1, not {value!r}")
    return value


def text(name: str, value: object) -> str:
    """Return `value`, which must be a string that is not empty."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} must be a string that is not empty, not {value!r}")
    return value


def _instead(name: str, known: Iterable[str]) -> str:
    """The end of a sentence: the known name that is nearest to a wrong one, whatever its case."""
    by_folded = {each.casefold(): each for each in known}
    nearest = get_close_matches(str(name).casefold(), by_folded, n=1)
    return f"; did you mean {by_folded[nearest[0]]}?" if nearest else ""
