"""The names of APIs, as a user gives them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from odradek.protocol.api import NAMES, by_name


def api_names(given: Iterable[str]) -> frozenset[str]:
    """Return Kafka's names of these APIs, which may be written as modules, too (`list_offsets`).

    Raises ValueError for an unknown one, with the nearest name.
    """
    return frozenset(_api_name(name) for name in given)


def _api_name(given: str) -> str:
    try:
        return by_name(given).name
    except KeyError:
        by_lower = {name.lower(): name for name in NAMES.values()}
        near = difflib.get_close_matches(given.replace("_", "").replace("-", "").lower(), by_lower, n=1)
        hint = f"; did you mean {by_lower[near[0]]}?" if near else ""
        raise ValueError(f"no API is called {given!r}{hint}") from None
