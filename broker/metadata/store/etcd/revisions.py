"""The batches of a watch: etcd's responses, split into whole revisions.

```
response 1   10 a, 10 b, 11 a                 ─► Batch(10, a b)  Batch(11, a)
response 2   12 a, 12 c, 13 a   fragment      ─► Batch(12, a c)               13 is kept back: more may follow
response 3   13 b, 14 a                       ─► Batch(13, a b)  Batch(14, a)
response 4   (nothing, header revision 17)    ─► Batch(17)
```

A response has whole revisions, in order, unless it is marked as a fragment: then the next one goes on. A watch starts
at the last revision that its owner has, not one above it, because etcd reports no progress to a watch that starts above
the store's revision. So what comes again is dropped here.

The revision in the header of a response with changes, or of the one that confirms the creation, is the server's:
changes below it may still follow. Only a response without either reports progress.
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter

from odradek.broker.metadata.store.etcd.messages import WatchResponse
from odradek.broker.metadata.store.store import Batch, Change


class Revisions:
    """Responses of one stream become batches. `reached`: everything up to this revision has been returned."""

    def __init__(self, reached: int) -> None:
        self.reached = reached
        self._kept_back: list[tuple[int, Change]] = []

    def batches(self, response: WatchResponse) -> list[Batch]:
        """Return the batches that `response` completes; one without changes reports progress."""
        if not response.changes and not self._kept_back:
            return [] if response.created or response.fragment else self._progress(response.header_revision)
        changes = self._kept_back + response.changes
        self._kept_back = []
        if response.fragment:
            last = changes[-1][0]
            self._kept_back = [each for each in changes if each[0] == last]
            changes = changes[: -len(self._kept_back)]
        return self._split(changes)

    def _progress(self, revision: int) -> list[Batch]:
        """A server that lags behind reports an old revision."""
        if revision < self.reached:
            return []
        self.reached = revision
        return [Batch(revision, ())]

    def _split(self, changes: list[tuple[int, Change]]) -> list[Batch]:
        batches = []
        for revision, group in groupby(changes, key=itemgetter(0)):
            if revision > self.reached:
                self.reached = revision
                batches.append(Batch(revision, tuple(sorted((change for _, change in group), key=itemgetter(0)))))
        return batches
