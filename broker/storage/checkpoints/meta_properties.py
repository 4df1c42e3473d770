"""`meta.properties`: node, cluster and id of a log directory.

```
#
#Sat Nov 21 06:22:19 UTC 2026
node.id=1
directory.id=5uXFPvNOOEg7p4cQBrsL1A
version=1
cluster.id=MkU3OEVBNTcwNTJENDM2Qk
```
A properties file as Java writes it; lines that begin with `#` or `!` are comments. A broker rejects a directory of
another node or cluster, whose logs belong to other topics.
"""

from __future__ import annotations

from typing import NamedTuple

from odradek.broker.storage.checkpoints.text_file import MalformedFileError
from odradek.broker.storage.disk.files import Files, replace_file
from odradek.broker.storage.names import META_PROPERTIES

_VERSION = "1"


class MetaProperties(NamedTuple):
    """The identity of a log directory; both ids are text, as Kafka writes UUIDs."""

    node_id: int
    cluster_id: str
    directory_id: str


def read_meta_properties(files: Files, directory: str) -> MetaProperties | None:
    """The identity of `directory`, None if it has none yet. Raises `MalformedFileError` if the file is damaged."""
    path = f"{directory}/{META_PROPERTIES}"
    try:
        lines = files.read(path).decode().splitlines()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise MalformedFileError(f"{path} is no text") from None
    properties = {}
    for line in lines:
        name, equals, value = line.strip().partition("=")
        if equals and not name.startswith(("#", "!")):
            properties[name.strip()] = value.strip()
    try:
        if properties["version"] != _VERSION:
            raise MalformedFileError(f"{path} is of version {properties['version']}, not {_VERSION}")
        return MetaProperties(int(properties["node.id"]), properties["cluster.id"], properties.get("directory.id", ""))
    except KeyError as error:
        raise MalformedFileError(f"{path} lacks {error}") from None
    except ValueError:
        raise MalformedFileError(f"{path} says node.id={properties['node.id']}") from None


def write_meta_properties(files: Files, directory: str, meta: MetaProperties) -> None:
    lines = (
        "#",
        f"node.id={meta.node_id}",
        f"directory.id={meta.directory_id}",
        f"version={_VERSION}",
        f"cluster.id={meta.cluster_id}",
    )
    replace_file(files, f"{directory}/{META_PROPERTIES}", "".join(f"{line}\n" for line in lines).encode())
