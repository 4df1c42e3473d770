"""Round trips and errors of compiled codecs, for every message and version."""

from __future__ import annotations

import tracemalloc
from collections.abc import Generator
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol import api, codec
from odradek.protocol.code_generation.codec_parts import MAX_ROWS
from odradek.protocol.errors import LocalProtocolError, RemoteProtocolError
from odradek.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from odradek.protocol.messages.create_topics import CreateTopicsRequest
from odradek.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.schema import Layout, LayoutField, Message, layout, spec
from odradek.protocol.stored_records.consumer_group import ConsumerGroupMemberMetadataValue
from odradek.protocol.uvarint import uvarint
from tests.effort import examples, some

EVERY_VERSION = [
    (cls, version)
    for key in api.NAMES
    for cls in (api.by_key(key).request, api.by_key(key).response)
    for version in range(spec(cls).first_version, spec(cls).last_version + 1)
]
TRIED = some(EVERY_VERSION)
NAMES = [f"{cls.__name__}-v{version}" for cls, version in TRIED]

SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "float64": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "string": st.text(max_size=150),
    "bytes": st.binary(max_size=150),
    "uuid": st.binary(min_size=16, max_size=16),
    "records": st.binary(max_size=150),
}


def values(field: LayoutField) -> st.SearchStrategy[Any]:
    one = structures(field.part) if field.part is not None else SCALARS[field.kind.name]
    value = st.lists(one, max_size=2) if field.is_array else one
    return st.none() | value if field.is_nullable else value


@cache
def structures(of: Layout) -> st.SearchStrategy[Any]:
    fields = [*of.fields, *(field for _, field in of.tagged)]
    return st.builds(of.cls, **{field.name: values(field) for field in fields})


@pytest.mark.parametrize(("cls", "version"), TRIED, ids=NAMES)
@examples(8)
@given(data=st.data())
def test_round_trip(cls: type[Message], version: int, data: st.DataObject) -> None:
    message = data.draw(structures(layout(cls, version)))
    encoded = codec.encode(message, version)
    assert codec.decode_from(cls, version, encoded) == (message, len(encoded))


@pytest.mark.parametrize(("cls", "version"), TRIED, ids=NAMES)
@examples(3)
@given(data=st.data())
def test_every_strict_prefix_is_refused(cls: type[Message], version: int, data: st.DataObject) -> None:
    encoded = codec.encode(data.draw(structures(layout(cls, version))), version)
    lengths = (
        range(len(encoded))
        if len(encoded) < 300
        else sorted(data.draw(st.sets(st.integers(0, len(encoded) - 1), max_size=99)))
    )
    for length in lengths:
        try:  # ten times as fast as pytest.raises
            codec.decode(cls, version, encoded[:length])
        except RemoteProtocolError:
            continue
        pytest.fail(f"a prefix of {length} of {len(encoded)} bytes was decoded")


@examples(300)
@given(which=st.sampled_from(EVERY_VERSION), garbage=st.binary(max_size=400))
def test_random_bytes_are_decoded_or_refused(which: tuple[type[Message], int], garbage: bytes) -> None:
    cls, version = which
    try:
        codec.decode(cls, version, garbage)
    except RemoteProtocolError:
        pass


@pytest.mark.parametrize(
    ("cls", "version", "lie"),
    [
        (MetadataRequest, 1, b"\x7f\xff\xff\xff"),
        (MetadataRequest, 12, b"\xff\xff\xff\xff\x0f"),
        (FetchRequest, 4, bytes(17) + b"\x7f\xff\xff\xff" + bytes(8)),
        (CreateTopicsRequest, 7, b"\xff\xff\xff\xff\x0f" + bytes(8)),
    ],
)
def test_a_wrong_length_allocates_nothing(cls: type[Message], version: int, lie: bytes) -> None:
    with pytest.raises(RemoteProtocolError):  # once for the compiler's own memory
        codec.decode(cls, version, lie)
    tracemalloc.start()
    try:
        with pytest.raises(RemoteProtocolError):
            codec.decode(cls, version, lie)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 32 * 1024


def test_unknown_tagged_fields_are_skipped() -> None:
    plain = codec.encode(MetadataRequest(topics=None), 12)
    assert plain[-1] == 0
    tagged = plain[:-1] + b"\x02" + b"\x63\x03abc" + b"\x80\x01\x00"
    assert codec.decode_from(MetadataRequest, 12, tagged) == (MetadataRequest(topics=None), len(tagged))


def test_a_known_tagged_field_of_another_size_is_refused() -> None:
    encoded = codec.encode(FetchRequest(cluster_id="abc"), 12)
    position = encoded.index(b"\x04abc") - 1
    encoded[position] += 1
    with pytest.raises(RemoteProtocolError):
        codec.decode(FetchRequest, 12, encoded + b"\x00")


def test_a_value_that_the_version_cannot_carry_is_refused() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=False)
    codec.encode(request, 4)
    with pytest.raises(LocalProtocolError, match="allow_auto_topic_creation"):
        codec.encode(request, 3)


def test_an_ignorable_value_is_dropped_where_the_version_cannot_carry_it() -> None:
    request = FetchRequest(topics=[FetchTopic(topic="t", topic_id=b"0123456789abcdef", partitions=[FetchPartition()])])
    assert codec.decode(FetchRequest, 12, codec.encode(request, 12)).topics[0].topic_id == bytes(16)


@pytest.mark.parametrize(
    "message",
    [
        MetadataRequest(topics=[MetadataRequestTopic(name=None)]),
        MetadataRequest(topics=[MetadataRequestTopic(name="x" * 32768)]),
        MetadataRequest(topics=[MetadataRequestTopic(name="\ud800")]),
        FetchRequest(max_wait_ms=2**31),
        FetchRequest(max_wait_ms="soon"),  # type: ignore[arg-type]
    ],
)
def test_a_value_that_does_not_fit_its_type_is_refused(message: Message) -> None:
    with pytest.raises(LocalProtocolError):
        codec.encode(message, 4)


@pytest.mark.parametrize("version", [4, 12])
def test_text_that_is_not_utf_8_is_replaced_as_in_java(version: int) -> None:
    encoded = codec.encode(MetadataRequest(topics=[MetadataRequestTopic(name="M\x01nchen")]), version)
    encoded[encoded.index(b"M\x01nchen") + 1] = 0xFC  # Latin-1
    assert codec.decode(MetadataRequest, version, encoded).topics == [MetadataRequestTopic(name="M\ufffdnchen")]


def test_versions_outside_the_declared_range_are_refused() -> None:
    with pytest.raises(LocalProtocolError):
        codec.encode(FetchRequest(), 3)
    with pytest.raises(LocalProtocolError):
        codec.decode(FetchRequest, 19, b"")


def test_versions_of_one_layout_share_a_codec() -> None:
    assert codec.encoder(FetchRequest, 5) is codec.encoder(FetchRequest, 6)
    assert codec.encoder(FetchRequest, 6) is not codec.encoder(FetchRequest, 7)


class FileSlice:
    """A substitute for a slice of a segment file: it has a length and no bytes."""

    def __len__(self) -> int:
        return 5


@pytest.mark.parametrize("version", [4, 12, 17])
def test_records_that_are_not_bytes_are_spliced_at_their_position(version: int) -> None:
    def response(*contents: Any) -> FetchResponse:
        partitions = [PartitionData(partition_index=i, records=r) for i, r in enumerate(contents)]
        return FetchResponse(responses=[FetchableTopicResponse(partitions=partitions)])

    out = bytearray()
    splices: codec.Splices = []
    first, second = FileSlice(), FileSlice()
    codec.encode_into(response(first, b"xy", second), version, out, splices)
    assert [piece for _, piece in splices] == [first, second]
    whole, done = bytearray(), 0
    for (position, _), content in zip(splices, (b"hello", b"world"), strict=True):
        whole += out[done:position] + content
        done = position
    assert whole + out[done:] == codec.encode(response(b"hello", b"xy", b"world"), version)


def test_records_decode_to_a_view_of_the_input() -> None:
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData(records=b"abc")])])
    buffer = bytearray(codec.encode(response, 12))
    view = codec.decode(FetchResponse, 12, buffer).responses[0].partitions[0].records
    position = buffer.index(b"abc")
    buffer[position] = ord("x")
    assert bytes(view) == b"xbc"
    view.release()


def test_a_traceback_shows_the_compiled_source() -> None:
    import traceback

    with pytest.raises(RemoteProtocolError) as caught:
        codec.decode(FetchRequest, 4, b"\x00")
    assert caught.value.__cause__ is not None
    shown = "".join(traceback.format_exception(caught.value.__cause__))
    assert "unpack_" in shown
    assert "# replica_id" in shown


def test_a_null_structure_in_a_tag_is_encoded_as_zero() -> None:
    # Written by Apache Kafka 4.3.1 for a member of the consumer protocol.
    stored = bytes.fromhex("000005776972650b2f3132372e302e302e31020763672d74776f010000ea600001000100")
    member = codec.decode(ConsumerGroupMemberMetadataValue, 0, stored, 0)
    assert member.classic_member_metadata is None
    assert codec.encode(member, 0) == stored


LAST_VERSIONS = some(
    [(cls, spec(cls).last_version) for key in api.NAMES for cls in (api.by_key(key).request, api.by_key(key).response)]
)


@pytest.mark.parametrize(("cls", "version"), LAST_VERSIONS, ids=[cls.__name__ for cls, _ in LAST_VERSIONS])
@examples(2)
@given(data=st.data())
def test_codecs_in_steps_equal_those_without_steps(data: st.DataObject, cls: type[Message], version: int) -> None:
    message = data.draw(structures(layout(cls, version)))
    encoded = codec.encode(message, version)
    out = bytearray()

    _end_of(codec.encoder_in_steps(cls, version)(message, out, []))
    decoded, end = _end_of(codec.decoder_in_steps(cls, version)(memoryview(out), 0))

    assert out == encoded
    assert (decoded, end) == codec.decode_from(cls, version, encoded)


def test_a_long_list_is_decoded_and_encoded_in_steps_of_some_kilobytes() -> None:
    message = MetadataRequest([MetadataRequestTopic(name=f"topic-{index}") for index in range(10_000)])
    out = bytearray()

    encoding = list(codec.encoder_in_steps(MetadataRequest, 9)(message, out, []))
    decoding = list(codec.decoder_in_steps(MetadataRequest, 9)(memoryview(out), 0))

    assert len(out) // 5000 < len(encoding) == len(decoding) < len(out) // 4000


@pytest.mark.parametrize("count", [MAX_ROWS, MAX_ROWS + 1])
def test_the_rows_of_a_large_request_are_bounded(count: int) -> None:
    names = codec.encode(MetadataRequest([MetadataRequestTopic(name="")] * count), 9)
    numbers = codec.encode(
        AlterReplicaLogDirsRequest(
            [AlterReplicaLogDir("/", [AlterReplicaLogDirTopic("t", [0] * (count // 2)) for _ in range(2)])]
        ),
        2,
    )

    for cls, version, encoded in ((MetadataRequest, 9, names), (AlterReplicaLogDirsRequest, 2, numbers)):
        decoding = codec.decoder_in_steps(cls, version)(memoryview(encoded), 0)
        if count > MAX_ROWS or cls is not MetadataRequest:
            with pytest.raises(RemoteProtocolError, match="arrays have"):
                _end_of(decoding)
        else:
            _end_of(decoding)


def test_the_tagged_fields_of_a_structure_are_bounded() -> None:
    known, unknown = codec.encode(FetchRequest(), 12), codec.encode(MetadataRequest([]), 9)
    for cls, version, encoded in ((FetchRequest, 12, known), (MetadataRequest, 9, unknown)):
        encoded[-1:] = uvarint(1001) + b"\x63\x00" * 1001
        with pytest.raises(RemoteProtocolError, match="1001 tagged fields"):
            codec.decode(cls, version, encoded)


def _end_of(steps: Generator[None, None, Any]) -> Any:
    """Return the result of a codec in steps."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
