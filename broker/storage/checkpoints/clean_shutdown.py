"""`.kafka_cleanshutdown`: the marker of a clean stop, after which nothing needs recovery.

```
{"version":0,"brokerEpoch":17}
```
A clean stop writes it last, and a start removes it first, so a start after any interruption finds no marker. KIP-966
compares the broker epoch to tell a broker that lost unsynced data from one that did not.
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
    """Remove the marker and return its broker epoch (-1 if it has none); return None if there is no marker."""
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
