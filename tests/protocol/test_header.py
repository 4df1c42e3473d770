"""Headers of requests and responses, and the exception for ApiVersions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from odradek.protocol import header
from odradek.protocol.api import NAMES, by_key
from odradek.protocol.errors import LocalProtocolError, RemoteProtocolError
from odradek.protocol.header import RequestHeader
from odradek.protocol.messages.api_versions import ApiVersionsResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse

FACTS = Path(__file__).parent / "data" / "facts"


def test_fields_are_those_of_kafka() -> None:
    request = json.loads((FACTS / "RequestHeader.json").read_text())
    assert [f["name"] for f in request["fields"]] == ["RequestApiKey", "RequestApiVersion", "CorrelationId", "ClientId"]
    assert request["flexibleVersions"] == "2+"
    assert request["fields"][3]["flexibleVersions"] == "none"
    response = json.loads((FACTS / "ResponseHeader.json").read_text())
    assert [f["name"] for f in response["fields"]] == ["CorrelationId"]
    assert response["flexibleVersions"] == "1+"


@pytest.mark.parametrize("key", sorted(NAMES))
def test_flexible_versions_have_flexible_headers(key: int) -> None:
    api = by_key(key)
    for version in range(api.min_version, api.max_version + 1):
        flexible = api.flexible_since is not None and version >= api.flexible_since
        assert header.request_header_version(key, version) == (2 if flexible else 1)
        assert header.response_header_version(key, version) == (1 if flexible and key != 18 else 0)


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("client_id", [None, "", "kcat", "ümläut"])
def test_request_header_round_trip(version: int, client_id: str | None) -> None:
    key, api_version = {0: (7, 0), 1: (3, 1), 2: (3, 12)}[version]
    head = RequestHeader(key, api_version, -7, client_id if version else None)
    encoded = header.encode_request_header(head, version)
    assert header.decode_request_header(encoded) == (head, len(encoded))
    for length in range(len(encoded)):
        with pytest.raises(RemoteProtocolError):
            header.decode_request_header(encoded[:length])


def test_tagged_fields_of_a_request_header_are_skipped() -> None:
    encoded = header.encode_request_header(RequestHeader(3, 12, 1, "c"), 2)
    encoded[-1:] = b"\x01\x05\x02ab"
    assert header.decode_request_header(encoded) == (RequestHeader(3, 12, 1, "c"), len(encoded))
    encoded[-3] = 200
    with pytest.raises(RemoteProtocolError):
        header.decode_request_header(encoded)


@pytest.mark.parametrize("client_id", [None, "", "kcat", "ümläut"])
def test_a_repeated_header_may_differ_only_in_its_correlation_id(client_id: str | None) -> None:
    first = header.encode_request_header(RequestHeader(3, 12, 1, client_id), 2)
    known = header.RepeatedHeader(first + b"body", 3, 12, client_id, len(first))
    again = header.encode_request_header(RequestHeader(3, 12, -7, client_id), 2)
    assert known.correlation_id_of(again + b"other body") == -7
    for position in (0, 1, 2, 3, *range(8, len(again))):
        other = bytearray(again)
        other[position] ^= 1
        assert known.correlation_id_of(other) is None
    for length in range(len(again)):
        assert known.correlation_id_of(again[:length]) is None


def test_a_client_id_that_is_not_utf_8_is_replaced_as_in_java() -> None:
    encoded = header.encode_request_header(RequestHeader(3, 1, 1, "M\x01nchen"), 1)
    encoded[11] = 0xFC  # Latin-1, which librdkafka forwards unchanged
    assert header.decode_request_header(encoded)[0].client_id == "M\ufffdnchen"


def test_the_header_of_an_unknown_api_is_read() -> None:
    encoded = header.encode_request_header(RequestHeader(4711, 3, 9, "x"), 1)
    assert header.decode_request_header(encoded)[0] == RequestHeader(4711, 3, 9, "x")


@pytest.mark.parametrize(
    "head", [RequestHeader(3, 12, 2**31), RequestHeader(3, 12, 1, "x" * 32768), RequestHeader(3, 12, 1, "\ud800")]
)
def test_a_header_that_does_not_fit_its_fields_is_refused(head: RequestHeader) -> None:
    with pytest.raises(LocalProtocolError):
        header.encode_request(head, MetadataRequest())


@pytest.mark.parametrize("length", [b"\xff\xfe", b"\x7f\xff"])
def test_a_client_id_of_impossible_length_is_refused(length: bytes) -> None:
    encoded = header.encode_request_header(RequestHeader(3, 1, 1, "abc"), 1)
    encoded[8:10] = length
    with pytest.raises(RemoteProtocolError):
        header.decode_request_header(encoded)


def test_api_versions_is_always_answered_with_header_v0() -> None:
    encoded = header.encode_response(18, 4, 77, ApiVersionsResponse(error_code=3))
    assert bytes(encoded[:6]) == b"\x00\x00\x00\x4d\x00\x03"
    assert header.decode_response(18, 4, encoded) == (77, ApiVersionsResponse(error_code=3))


def test_whole_request_and_response() -> None:
    head = RequestHeader(3, 12, 5, "me")
    request = header.encode_request(head, MetadataRequest(topics=None))
    assert header.decode_request_header(request)[0] == head
    response = header.encode_response(3, 12, 5, MetadataResponse(controller_id=1))
    assert header.decode_response(3, 12, response) == (5, MetadataResponse(controller_id=1))
    with pytest.raises(RemoteProtocolError):
        header.decode_response(3, 12, response[:3])
