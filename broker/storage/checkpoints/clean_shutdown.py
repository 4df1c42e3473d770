"""`.kafka_cleanshutdown`: the last broker here stopped in order, so nothing needs recovery.

```
{"version":0,"brokerEpoch":17}
```
Written as the very last thing of a clean stop, removed as the first of a start: whatever happens between, the next
start finds no marker. The broker epoch is what KIP-966 compares, to tell a broker that lost unsynced data from one that
did not.
"""

from __future__ import annotations

import msgspec

from odradek.broker.storage.disk.files import Files, replace_file
from odradek.broker.storage.names import CLEAN_SHUTDOWN

_VERSION = 0
UNKNOWN_BROKER_EPOCH = -1


class _Content(msgspec.Struct, rename="camel"):
    version: int
    broker_epoch: int = UNKNOWN_BROKER_EPOCH


def write_clean_shutdown(files: Files, directory: str, broker_epoch: int) -> None:
    content = _Content(version=_VERSION, broker_epoch=broker_epoch)
    replace_file(files, f"{directory}/{CLEAN_SHUTDOWN}", msgspec.json.encode(content))


def take_clean_shutdown(files: Files, directory: str) -> int | None:
    """Remove the marker and return the broker epoch in it (-1 if it says none); None if there was no marker."""
    path = f"{directory}/{CLEAN_SHUTDOWN}"
    try:
        data = files.read(path)
    except FileNotFoundError:
        return None
    files.remove(path)
    files.fsync_directory(directory)
    try:
        return msgspec.json.decode(data, type=_Content).broker_epoch
    except msgspec.DecodeError:
        return UNKNOWN_BROKER_EPOCH  # Kafka before 3.7 left the file empty
