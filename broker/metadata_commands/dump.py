"""`metadata dump`: every key with its value, a JSON object on each line, for `grep` and `jq`.

```
{"key":"/odradek/v1/topics/names/orders","created":7,"changed":7,"value":{"id":"…","partitions":3,"rf":3,"state":"ok"}}
```

`created` and `changed` are revisions, `lease` is that of a session. Keys of a partition also have `topic`, its name. A
value that is no JSON is in `base64`. Those with credentials are `"(hidden)"`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import msgspec

from odradek.broker.metadata.keys import TOPIC_ID_LENGTH
from odradek.broker.metadata.store.store import KV
from odradek.broker.metadata.values import decode_topic
from odradek.broker.metadata_commands.opened_store import StoredMetadata


def lines(metadata: StoredMetadata, prefix: str) -> Iterator[str]:
    """Yield a line for each key below `prefix`, which is relative to the cluster's own or absolute."""
    start = prefix.encode() if prefix.startswith("/") else metadata.keys.prefix + b"/" + prefix.encode()
    names = _topic_names(metadata)
    for kv in metadata.kvs:
        if kv.key.startswith(start):
            yield msgspec.json.encode(_row(metadata, kv, names)).decode()


def _row(metadata: StoredMetadata, kv: KV, names: dict[bytes, str]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "key": kv.key.decode(errors="backslashreplace"),
        "created": kv.create_revision,
        "changed": kv.mod_revision,
    }
    if kv.lease:
        row["lease"] = kv.lease
    if kv.key.startswith(metadata.keys.topics):
        topic_id = kv.key[len(metadata.keys.topics) :][:TOPIC_ID_LENGTH]
        if topic_id in names:
            row["topic"] = names[topic_id]
    if kv.key.startswith(metadata.keys.prefix + b"/scram/"):
        row["value"] = "(hidden)"
        return row
    try:
        row["value"] = msgspec.json.decode(kv.value)
    except msgspec.DecodeError:
        row["base64"] = b64encode(kv.value).decode()
    return row


def _topic_names(metadata: StoredMetadata) -> dict[bytes, str]:
    """Return the topics' names by their ids, as these are in keys."""
    start = metadata.keys.topic_names
    found = {}
    for kv in metadata.kvs:
        if kv.key.startswith(start):
            try:
                found[decode_topic(kv.value).id.encode()] = kv.key[len(start) :].decode()
            except msgspec.MsgspecError:
                continue  # its own line shows the value
    return found
