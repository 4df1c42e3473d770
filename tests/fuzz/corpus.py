"""Recorded requests of real clients to Apache Kafka, with topics that exist here, so that handlers execute them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from odradek.protocol import api, codec, header
from odradek.protocol.errors import ProtocolError

WIRE = Path(__file__).parents[1] / "protocol" / "data" / "wire"

TOPIC_NAME = re.compile(rb"ho-[a-z]+-[0-9a-z]{8}")
CREATE_TOPICS, DELETE_TOPICS = 19, 20


def stand_in(length: int) -> str:
    """The topic that replaces all topics with names of this length, so that no length field changes."""
    return "fuzz".ljust(length, "z")


class Corpus:
    """The requests without their length prefix; `topics` are the topics in them."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        lengths: set[int] = set()
        for request in _recorded():
            if int.from_bytes(request[:2]) in (CREATE_TOPICS, DELETE_TOPICS):
                self.requests.append(request)
                continue
            lengths.update(len(name) for name in TOPIC_NAME.findall(request))
            self.requests.append(TOPIC_NAME.sub(lambda name: stand_in(len(name[0])).encode(), request))
        self.topics = sorted(map(stand_in, lengths))

    def keep_served(self, versions: Mapping[int, range]) -> None:
        """Keep the requests that a broker with these API versions serves: for others it closes the connection."""
        self.requests = [r for r in self.requests if int.from_bytes(r[2:4]) in versions.get(int.from_bytes(r[:2]), ())]

    def name_topic_id(self, topic_id: bytes) -> None:
        """Replace the recorded id of a topic with `topic_id`."""
        for number, request in enumerate(self.requests):
            for other in _topic_ids(request):
                self.requests[number] = self.requests[number].replace(other, topic_id)


def _recorded() -> Iterator[bytes]:
    for path in sorted(WIRE.glob("*.json")):
        yield bytes.fromhex(json.loads(path.read_text())["request"])


def _topic_ids(request: bytes) -> set[bytes]:
    try:
        request_header, offset = header.decode_request_header(request)
        message = codec.decode(api.by_key(request_header.api_key).request, request_header.api_version, request, offset)
    except ProtocolError:  # a version that is newer than this release: recorded on purpose
        return set()
    topics = getattr(message, "topics", None) or getattr(message, "topic_data", None) or []
    return {bytes(topic.topic_id) for topic in topics if any(getattr(topic, "topic_id", b""))}
