"""`partition.metadata`: the topic id of a partition's directory, since topic names are reused (KIP-516).

```
version: 0
topic_id: 2eUHgRqfStWy-DpSiN8B4w
```
"""

from __future__ import annotations

from odradek.broker.storage.checkpoints.text_file import MalformedFileError
from odradek.broker.storage.disk.files import Files, parent_of, replace_file, sync_file
from odradek.broker.storage.names import PARTITION_METADATA
from odradek.protocol.uuids import uuid_from_text, uuid_to_text

_VERSION = 0


def write_topic_id(files: Files, directory: str, topic_id: bytes) -> None:
    """Write the topic id, not yet synced; `sync_topic_id` runs before any of the log counts as synced."""
    text = f"version: {_VERSION}\ntopic_id: {uuid_to_text(topic_id)}"  # without a line end, as Kafka has it
    replace_file(files, f"{directory}/{PARTITION_METADATA}", text.encode(), synced=False)


def sync_topic_id(files: Files, directory: str) -> None:
    """Sync the topic id, and the name of the partition's directory."""
    sync_file(files, f"{directory}/{PARTITION_METADATA}")
    files.fsync_directory(parent_of(directory))


def read_topic_id(files: Files, directory: str) -> bytes:
    """The topic id of a partition's directory; `MalformedFileError` if the file is there and not of its form."""
    path = f"{directory}/{PARTITION_METADATA}"
    try:
        lines = dict(line.split(": ", 1) for line in files.read(path).decode().splitlines() if line.strip())
        if lines["version"].strip() != str(_VERSION):
            raise MalformedFileError(f"{path} is of version {lines['version']}")
        return uuid_from_text(lines["topic_id"].strip())
    except (ValueError, KeyError) as error:
        raise MalformedFileError(f"{path} is no partition metadata: {error!r}") from error
