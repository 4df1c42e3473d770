"""Real requests and responses of real clients and Kafka (`data/wire`) decode and encode to the same bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from odradek.protocol import codec, header
from odradek.protocol.api import by_key
from odradek.protocol.errors import RemoteProtocolError
from tests.effort import some

EXCHANGES = sorted((Path(__file__).parents[1] / "data" / "wire").glob("*.json"))
# franz-go asks ApiVersions v5, which 4.3.1 does not support: it answers in v0 with error 35.
FROM_THE_FUTURE = {"ApiVersions_v5_0", "ApiVersions_v5_1"}


@pytest.mark.parametrize(
    "path", some([p for p in EXCHANGES if p.stem not in FROM_THE_FUTURE]), ids=lambda path: path.stem
)
def test_exchange_survives_decoding_and_encoding(path: Path) -> None:
    exchange = json.loads(path.read_text())
    request = bytes.fromhex(exchange["request"])
    head, offset = header.decode_request_header(request)
    assert (head.api_key, head.api_version) == (exchange["api_key"], exchange["api_version"])
    message, end = codec.decode_from(by_key(head.api_key).request, head.api_version, request, offset)
    assert end == len(request)
    assert header.encode_request(head, message) == request

    response = bytes.fromhex(exchange["response"])
    if not response:
        return
    correlation_id, answer = header.decode_response(head.api_key, head.api_version, response)
    assert correlation_id == head.correlation_id
    assert header.encode_response(head.api_key, head.api_version, correlation_id, answer) == response


@pytest.mark.parametrize("name", sorted(FROM_THE_FUTURE))
def test_an_unknown_version_of_api_versions_is_answered_in_v0(name: str) -> None:
    exchange = json.loads((Path(__file__).parents[1] / "data" / "wire" / f"{name}.json").read_text())
    head, _ = header.decode_request_header(bytes.fromhex(exchange["request"]))
    assert (head.api_key, head.api_version) == (18, 5)
    response = bytes.fromhex(exchange["response"])
    correlation_id, answer = header.decode_response(18, 0, response)
    assert header.encode_response(18, 0, correlation_id, answer) == response
    assert answer.error_code == 35  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", EXCHANGES[::7], ids=lambda path: path.stem)
def test_strict_prefix_of_a_real_request_is_refused(path: Path) -> None:
    exchange = json.loads(path.read_text())
    request = bytes.fromhex(exchange["request"])
    head, offset = header.decode_request_header(request)
    if path.stem in FROM_THE_FUTURE:
        return
    for length in range(offset, len(request)):
        with pytest.raises(RemoteProtocolError):
            codec.decode(by_key(head.api_key).request, head.api_version, request[:length], offset)
    for length in range(offset):
        with pytest.raises(RemoteProtocolError):
            header.decode_request_header(request[:length])
