"""Python's collector of cyclic garbage in a broker process, whose pauses must not grow with the metadata.

A full collection visits all objects that it tracks, and nothing else runs meanwhile. A broker of 10,000 topics has a
million objects: such a pause takes 150 to 400 ms, and one request of a megabyte causes it. Nearly all of them stay for
long, so what a full collection has found alive is exempt from the later ones (`gc.freeze`); reference counts free it
nevertheless. Only cycles among the exempt objects would stay for ever. So when these have doubled, they are exempt no
more, and the next full collection visits everything once.

| objects | visited by full collections |
|---|---|
| of the start: modules, classes, tables | never, until the exempt objects have doubled |
| young | each time |
| found alive by a full collection | not again, until the exempt objects have doubled |
"""

from __future__ import annotations

import gc
from typing import Final

_OLDEST: Final = 2
SPARE: Final = 1_000_000
"""How many objects more than twice those of the last complete visit may be exempt."""


class GarbageCollection:
    """Keeps full collections short from `start` to `stop`. It belongs to a process, so an embedded broker has none."""

    def __init__(self, spare: int = SPARE) -> None:
        self._spare = spare
        self._exempt = 0  # at most so many, since the last complete visit
        self._most_exempt = 0
        self._visits_all = False  # the next full collection does

    def start(self) -> None:
        """Exempt all objects that exist, which are those of the start, and collect from now on."""
        gc.freeze()
        self._exempt = gc.get_freeze_count()
        self._most_exempt = 2 * self._exempt + self._spare
        gc.callbacks.append(self._collected)
        gc.enable()

    def stop(self) -> None:
        """Leave the exempt objects as they are, and exempt no others."""
        gc.callbacks.remove(self._collected)

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        """Exempt what a full collection has found alive. `info` is that of `gc.callbacks`."""
        if phase != "stop" or info["generation"] != _OLDEST:
            return
        self._exempt += len(gc.get_objects(generation=_OLDEST))
        gc.freeze()
        if self._visits_all:
            self._visits_all = False
            self._most_exempt = 2 * self._exempt + self._spare
        elif self._exempt > self._most_exempt:
            self._exempt = gc.get_freeze_count()  # some were freed; to count takes 50 ns each, so it is done rarely
            if self._exempt > self._most_exempt:
                self._visits_all = True
                self._exempt = 0
                gc.unfreeze()
