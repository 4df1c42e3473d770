"""`odradek-metadata-revision`: what the directory's broker has last seen of the shared metadata store.

```
{"version":0,"revision":1234,"broker_epoch":1200,"logs_revision":1190}
```
The highest revision, and the epoch of the broker's last registration. A store with a lower revision, or with an earlier
epoch of this broker, is an older copy: what came later is unknown to it, and epochs would be given out a second time.
The epoch is there because an older store can reach the revision again: sessions in it expire, others write to it too.

The logs of all partitions that were created up to `logs_revision`, and are on this broker, have been on its disks: one
that is missing was there, and its records may come back. A log that is missing and newer was not made before the broker
was killed or lost power, or not synced: nothing of it can come back (`replication.lost_logs`). Absent, as in files of
earlier versions: all logs have been there.

Only a broker of a cluster writes the file: when it has registered, once in a while, and when it stops. Apache Kafka
ignores it, as every file in a log directory that it does not know.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from odradek.broker.storage.checkpoints.text_file import MalformedFileError
from odradek.broker.storage.disk.files import Files, replace_file
from odradek.broker.storage.names import METADATA_REVISION
from odradek.protocol.varint import INT64_MAX

_VERSION = 0
ALL_LOGS = INT64_MAX


class SeenMetadata(NamedTuple):
    """The content of the file; 0 without one. They compare by the revision."""

    revision: int = 0
    broker_epoch: int = 0
    logs_revision: int = ALL_LOGS


class _Content(msgspec.Struct):
    version: int
    revision: int
    broker_epoch: int = 0
    logs_revision: int = ALL_LOGS


def write_metadata_revision(files: Files, directory: str, seen: SeenMetadata) -> None:
    content = _Content(_VERSION, *seen)
    replace_file(files, f"{directory}/{METADATA_REVISION}", msgspec.json.encode(content))


def read_metadata_revision(files: Files, directory: str) -> SeenMetadata:
    """Return what the directory has. Raises `MalformedFileError` if the file is damaged."""
    path = f"{directory}/{METADATA_REVISION}"
    try:
        content = msgspec.json.decode(files.read(path), type=_Content)
    except FileNotFoundError:
        return SeenMetadata()
    except msgspec.DecodeError as error:
        raise MalformedFileError(f"{path} is damaged ({error}): remove it, unless etcd was restored") from None
    if content.version != _VERSION:
        raise MalformedFileError(f"{path} is of version {content.version}, not {_VERSION}")
    return SeenMetadata(content.revision, content.broker_epoch, content.logs_revision)
