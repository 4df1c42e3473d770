"""The explainer against compiled decoders: the same values, the same errors, and a row for every byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol import codec, header
from odradek.protocol.api import Api, by_key
from odradek.protocol.cli.explainer import Explainer, ExplanationError
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.header import RequestHeader
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.schema import Message
from tests.effort import examples, some

# franz-go sends ApiVersions v5, which 4.3.1 does not support: no class has it.
EXCHANGES = [
    path
    for path in sorted((Path(__file__).parents[1] / "data" / "wire").glob("*.json"))
    if not path.stem.startswith("ApiVersions_v5")
]


def bodies() -> list[tuple[type[Message], int, bytes]]:
    """Every body of the exchanges, without its header."""
    found: list[tuple[type[Message], int, bytes]] = []
    for path in EXCHANGES:
        exchange = json.loads(path.read_text())
        api, version = by_key(exchange["api_key"]), exchange["api_version"]
        request, response = bytes.fromhex(exchange["request"]), bytes.fromhex(exchange["response"])
        found.append((api.request, version, request[header.decode_request_header(request)[1] :]))
        if response:
            size = 5 if header.response_header_version(api.key, version) else 4
            found.append((api.response, version, response[size:]))
    return found


BODIES = bodies()


def explain(data: bytes, api: Api, version: int, *, is_request: bool) -> tuple[Message, Explainer]:
    explainer = Explainer(data)
    message = explainer.request(api, version) if is_request else explainer.response(api, version)
    return message, explainer


def explained_bytes(explainer: Explainer) -> list[int]:
    return [offset for row in explainer.rows for offset in range(row.start, row.end)]


@pytest.mark.parametrize("path", some(EXCHANGES), ids=lambda path: path.stem)
def test_every_real_exchange_is_explained_with_the_values_of_the_compiled_codec(path: Path) -> None:
    exchange = json.loads(path.read_text())
    api, version = by_key(exchange["api_key"]), exchange["api_version"]
    request, response = bytes.fromhex(exchange["request"]), bytes.fromhex(exchange["response"])

    message, explainer = explain(request, api, version, is_request=True)
    _, offset = header.decode_request_header(request)
    assert message == codec.decode(api.request, version, request, offset)
    assert explained_bytes(explainer) == list(range(len(request)))

    if response:
        message, explainer = explain(response, api, version, is_request=False)
        assert message == header.decode_response(api.key, version, response)[1]
        assert explained_bytes(explainer) == list(range(len(response)))


def read_by_codec(cls: type[Message], version: int, data: bytes) -> bytes | None:
    """Return the message encoded again, so that views and NaN compare equal; None if it was refused."""
    try:
        message, end = codec.decode_from(cls, version, data)
    except RemoteProtocolError:
        return None
    return bytes(codec.encode(message, version)) if end == len(data) else None


def read_by_explainer(cls: type[Message], version: int, data: bytes) -> bytes | None:
    explainer = Explainer(data)
    try:
        message = explainer.message(cls, version)
    except ExplanationError:
        return None
    assert explained_bytes(explainer) == list(range(len(data)))
    return bytes(codec.encode(message, version))


@examples(1000)
@given(which=st.sampled_from(BODIES), data=st.data())
def test_the_explainer_and_the_codec_decode_or_refuse_damaged_bytes_alike(
    which: tuple[type[Message], int, bytes], data: st.DataObject
) -> None:
    cls, version, body = which
    damaged = bytearray(body)
    for _ in range(data.draw(st.integers(1, 3))):
        # Most lengths, counts and tags are in the first bytes.
        at = data.draw(st.integers(0, min(len(damaged), 120)))
        cut = data.draw(st.integers(0, 3))
        damaged[at : at + cut] = data.draw(st.binary(max_size=4))
    assert read_by_explainer(cls, version, bytes(damaged)) == read_by_codec(cls, version, bytes(damaged))


@pytest.mark.parametrize("path", some(EXCHANGES[::5]), ids=lambda path: path.stem)
def test_of_every_strict_prefix_the_part_before_the_error_is_explained(path: Path) -> None:
    exchange = json.loads(path.read_text())
    api, version = by_key(exchange["api_key"]), exchange["api_version"]
    request = bytes.fromhex(exchange["request"])[:400]
    for length in range(len(request)):
        explainer = Explainer(request[:length])
        with pytest.raises(ExplanationError) as caught:
            explainer.request(api, version)
        explained = explained_bytes(explainer)
        assert explained == list(range(len(explained)))
        assert len(explained) <= caught.value.offset <= length


def fetch_response(records: bytes) -> bytes:
    partitions = [PartitionData(records=records)]
    message = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
    return bytes(header.encode_response(1, 12, 1, message))


def batch(**options: Any) -> bytearray:
    builder = BatchBuilder(**options)
    builder.append(1, b"k", b"v")
    builder.append(2, None, None)
    return builder.build(base_offset=10, leader_epoch=3)


def rows_of(records: bytes) -> list[tuple[str, str]]:
    _, explainer = explain(fetch_response(records), by_key(1), 12, is_request=False)
    names = [row.name for row in explainer.rows]
    at = names.index("records") + 1
    return [(row.name, row.text) for row in explainer.rows[at:] if row.name != "tagged fields"]


def test_record_batches_are_summarised_by_their_headers() -> None:
    plain, transactional = batch(), batch(producer_id=7, producer_epoch=1, base_sequence=40, is_transactional=True)
    common = "offsets 10 to 11, 2 records, codec none, leader epoch 3"
    producer = "producer 7 epoch 1 sequence 40, transactional"
    assert rows_of(bytes(plain + transactional)) == [
        ("batch", f"{len(plain)} bytes, {common}, crc ok"),
        ("batch", f"{len(transactional)} bytes, {common}, {producer}, crc ok"),
    ]


def test_a_batch_with_a_wrong_checksum_is_shown_as_such() -> None:
    damaged = batch()
    damaged[-1] ^= 1
    assert rows_of(bytes(damaged))[0][1].endswith("crc WRONG")


def test_a_batch_cut_off_at_the_end_is_shown_as_such() -> None:
    assert rows_of(bytes(batch() + batch()[:-1]))[1] == ("batch", f"{len(batch()) - 1} bytes, cut off")


def test_records_that_are_no_batches_are_no_error_of_the_message() -> None:
    assert rows_of(bytes(16) + b"\x01" + bytes(9)) == [("message set", "magic 1")]
    assert rows_of(b"x" * 100)[0][0] == "not a batch"
    assert rows_of(b"x") == [("batch", "1 byte, cut off")]
    assert rows_of(b"") == []


def test_an_error_names_the_field_and_the_offset() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="abc"), MetadataRequestTopic(name="de")])
    body = codec.encode(request, 12)
    position = body.index(b"\x03de")
    body[position] = 90
    with pytest.raises(ExplanationError, match="89 bytes wanted where") as caught:
        Explainer(body).message(MetadataRequest, 12)
    assert (caught.value.offset, caught.value.path) == (position + 1, "topics[1].name")


def test_an_error_in_a_tagged_field_names_the_field() -> None:
    body = codec.encode(FetchRequest(cluster_id="abc"), 12)
    position = body.index(b"\x04abc")
    body[position] = 3
    with pytest.raises(ExplanationError, match="cluster_id takes 3 of the 4 bytes") as caught:
        Explainer(body).message(FetchRequest, 12)
    assert (caught.value.offset, caught.value.path) == (position, "tagged fields")


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (b"\xff\xff\xff\xff\xff", "topics"),  # a varint without end
        (b"\xff\xff\xff\xff\x0f", "topics"),  # four billion elements
        (b"\x01\x00\x00\x01\x09\x7f", "tagged fields"),  # a tag of 127 bytes
        (b"\x01\x00\x00\x00\x00", "end of the message"),
    ],
)
def test_each_kind_of_error_names_its_field(body: bytes, path: str) -> None:
    with pytest.raises(ExplanationError) as caught:
        Explainer(body).message(MetadataRequest, 12)
    assert caught.value.path == path


def test_unknown_tagged_fields_are_shown() -> None:
    explainer = Explainer(codec.encode(MetadataRequest(topics=None), 12)[:-1] + b"\x01\x63\x03abc")
    assert explainer.message(MetadataRequest, 12) == MetadataRequest(topics=None)
    assert [(row.name, row.text) for row in explainer.rows[-3:]] == [
        ("tagged fields", "1"),
        ("tag 99", "3 bytes"),
        ("unknown", "3 bytes 616263"),
    ]


def test_a_request_of_another_api_or_version_is_refused() -> None:
    request = header.encode_request(RequestHeader(3, 12, 1, "me"), MetadataRequest(topics=None))
    with pytest.raises(ExplanationError, match="it is 3 Metadata, not 1 Fetch"):
        Explainer(request).request(by_key(1), 12)
    with pytest.raises(ExplanationError, match="it is 12, not 11"):
        Explainer(request).request(by_key(3), 11)
