"""A fault that `verify` finds: the file, the place in it, a sentence."""

from __future__ import annotations

from collections.abc import Callable

import msgspec


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """A fault of the file `path` (relative to the directory), with a byte position and an offset if there are any."""

    path: str
    problem: str
    position: int | None = None
    offset: int | None = None

    def __str__(self) -> str:
        at = "" if self.position is None else f" position {self.position}"
        of = "" if self.offset is None else f" offset {self.offset}"
        return f"{self.path}{at}{of}: {self.problem}"


Report = Callable[[Problem], None]
