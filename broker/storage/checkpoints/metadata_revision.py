"""`odradek-metadata-revision`: the highest revision of the shared metadata store that the directory's broker has seen.

```
{"version":0,"revision":1234}
```
A store with a lower revision is an older copy: what came later is unknown to it, and epochs would be given out a second
time. Only a broker of a cluster writes the file: when it has registered, once in a while, and when it stops. Apache
Kafka ignores it, as every file in a log directory that it does not know.
"""

from __future__ import annotations

import msgspec

from odradek.broker.storage.checkpoints.text_file import MalformedFileError
from odradek.broker.storage.disk.files import Files, replace_file
from odradek.broker.storage.names import METADATA_REVISION

_VERSION = 0


class _Content(msgspec.Struct):
    version: int
    revision: int


def write_metadata_revision(files: Files, directory: str, revision: int) -> None:
    content = _Content(version=_VERSION, revision=revision)
    replace_file(files, f"{directory}/{METADATA_REVISION}", msgspec.json.encode(content))


def read_metadata_revision(files: Files, directory: str) -> int:
    """Return the revision, 0 if the directory has none. Raises `MalformedFileError` if the file is damaged."""
    path = f"{directory}/{METADATA_REVISION}"
    try:
        content = msgspec.json.decode(files.read(path), type=_Content)
    except FileNotFoundError:
        return 0
    except msgspec.DecodeError as error:
        raise MalformedFileError(f"{path} is damaged ({error}): remove it, unless etcd was restored") from None
    if content.version != _VERSION:
        raise MalformedFileError(f"{path} is of version {content.version}, not {_VERSION}")
    return content.revision
