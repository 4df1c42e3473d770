"""PEM text, split into its blocks.

```
-----BEGIN CERTIFICATE-----
MIIB…                           base64, in lines of any length
-----END CERTIFICATE-----
```

Text between blocks is skipped (`openssl pkcs12` prints attributes there). A property may have the whole text in one
line, with spaces in place of the line ends, because Kafka's `DefaultSslEngineFactory` accepts that: `blocks` restores
the lines. A block with headers (`DEK-Info: …`, an encrypted key of an old format) is returned as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

# A label never has a dash, so that the search is linear.
_BLOCK = re.compile(r"-----BEGIN (?P<label>[A-Z0-9 ]+)-----(?P<body>[^-]*)-----END (?P=label)-----")
_BLOCK_WITH_HEADERS = re.compile(
    r"-----BEGIN (?P<label>[A-Z0-9 ]+)-----\s*?\n(?P<body>(?:[A-Za-z0-9-]+: [^\n]*\n)+[^-]*)-----END (?P=label)-----"
)
_LINE = 64


class PemBlock(NamedTuple):
    """One block: its label, such as CERTIFICATE, and its text in the form that libraries read."""

    label: str
    text: bytes


def blocks(text: str) -> Iterator[PemBlock]:
    """Yield the blocks in their order."""
    position = 0
    while (start := text.find("-----BEGIN ", position)) >= 0:
        match = _BLOCK.match(text, start) or _BLOCK_WITH_HEADERS.match(text, start)
        if match is None:
            position = start + 1
            continue
        position = match.end()
        label, body = match["label"], match["body"]
        if ":" not in body:
            joined = "".join(body.split())
            body = "".join(f"\n{joined[at : at + _LINE]}" for at in range(0, len(joined), _LINE)) + "\n"
        else:
            body = f"\n{body}"
        yield PemBlock(label, f"-----BEGIN {label}-----{body}-----END {label}-----\n".encode())
