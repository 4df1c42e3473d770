"""Files of interrupted operations in a partition's directory, and their removal or completion at start.

Compaction writes new segments as `.cleaned`, renames all of them to `.swap`, the highest offset first, marks the
segments that they replace `.deleted`, and renames `.swap` to the final names. So, when a directory is opened:

| file                                  | means                                 | action                              |
|---------------------------------------|---------------------------------------|-------------------------------------|
| `.deleted`                            | not part of the log any more          | remove; on failure: log a warning   |
| `.cleaned`                            | the new segments were not all written | remove; the old segments stay       |
| `.swap` from the lowest `.cleaned` on | not all new segments were renamed     | remove; the old segments stay       |
| `.swap` otherwise                     | the new segments are complete         | they replace those that they cover  |

The rules are Kafka's (`LogLoader`), so either broker can complete what the other one began. `find_leftovers` decides
and changes nothing: `offline` lists directories by the same rules.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from odradek.broker.storage.batch_scan import scan_batches
from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.files import Files
from odradek.broker.storage.names import CLEANED_SUFFIX, DELETED_SUFFIX, LOG_SUFFIX, SWAP_SUFFIX, parse_file_name

_LOG = logging.getLogger(__name__)

_LEFTOVERS = (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX)


class Leftovers(NamedTuple):
    """Names of files: `removed` are of no use, `covered` are replaced by `swapped`, which are complete."""

    removed: list[str]
    covered: list[str]
    swapped: list[str]


def has_leftovers(names: Iterable[str]) -> bool:
    return any(name.endswith(_LEFTOVERS) for name in names)


def find_leftovers(descriptors: DescriptorCache, directory: str, sizes: Mapping[str, int]) -> Leftovers:
    """Apply the table to the files of `directory`: `sizes` are their bytes by name.

    Reads complete `.swap` logs to find where they end. Raises `CorruptBatchError` for a damaged one.
    """
    offsets = {name: parsed[0] for name in sizes if (parsed := parse_file_name(name)) is not None}
    cleaned = [name for name in offsets if name.endswith(CLEANED_SUFFIX)]
    first_unfinished = min((offsets[name] for name in cleaned), default=None)
    removed = [name for name in sizes if name.endswith(DELETED_SUFFIX)]
    removed += [
        name
        for name in offsets
        if name.endswith(SWAP_SUFFIX) and first_unfinished is not None and offsets[name] >= first_unfinished
    ]
    removed += cleaned  # last: while one exists, the `.swap` files above it are known to be incomplete
    swapped = sorted(name for name in offsets if name.endswith(SWAP_SUFFIX) and name not in removed)
    return Leftovers(removed, _covered(descriptors, directory, sizes, offsets, swapped), swapped)


def settle_leftovers(descriptors: DescriptorCache, directory: str, sizes: Mapping[str, int]) -> None:
    """Complete or undo the interrupted operations in `directory`; `sizes` are its files, in bytes by name."""
    files = descriptors.retrying_files
    removed, covered, swapped = find_leftovers(descriptors, directory, sizes)
    for name in removed:
        _LOG.info("removing %s/%s, left behind by an unclean stop", directory, name)
        try:
            files.remove(f"{directory}/{name}")
        except OSError as error:
            if not name.endswith(DELETED_SUFFIX):  # `.deleted` files are ignored, the others are not
                raise
            _LOG.warning("%s/%s, which the log does not need, cannot be removed: %s", directory, name, error)
    for name in covered:
        _LOG.info("removing %s/%s, which compaction has replaced", directory, name)
        files.remove(f"{directory}/{name}")
    for name in swapped:
        _LOG.info("completing the swap of %s/%s", directory, name)
        files.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP_SUFFIX)}")
    files.fsync_directory(directory)


def remove_cleaned(files: Files, directory: str) -> None:
    """Remove the incomplete segments of a compaction; does nothing if the directory is gone."""
    try:
        entries = files.scan(directory)
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.name.endswith(CLEANED_SUFFIX):
            files.remove(f"{directory}/{entry.name}")


def _covered(
    descriptors: DescriptorCache,
    directory: str,
    sizes: Mapping[str, int],
    offsets: dict[str, int],
    swapped: list[str],
) -> list[str]:
    """The files of segments (and snapshots) between the first and the last offset of the segments in `swapped`."""
    logs = [name for name in swapped if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)]
    if not logs:
        return []
    end = 0
    for name in logs:
        path = f"{directory}/{name}"
        for batch in scan_batches(descriptors, path, 0, sizes[name]):
            end = max(end, batch.last_offset + 1)
        descriptors.forget(path)
    first = min(offsets[name] for name in logs)
    return [name for name, offset in offsets.items() if first <= offset < end and not name.endswith(_LEFTOVERS)]
