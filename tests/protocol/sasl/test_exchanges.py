"""Exchanges of real clients with user alice and password alice-secret, recorded on the wire: `exchanges.json`.

librdkafka 2.16, Java 4.3.1, aiokafka 0.14, kafka-python 3.0.12. The server's messages in it were
accepted by these clients.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from odradek.protocol.sasl import scram
from odradek.protocol.sasl.oauthbearer import ClientInitialResponse
from odradek.protocol.sasl.plain import PlainMessage
from odradek.protocol.sasl.scram import SCRAM_MECHANISMS, ScramCredential
from odradek.protocol.sasl.scram_client import ScramClient
from odradek.protocol.sasl.scram_messages import ClientFinal, ClientFirst, ServerFinal, ServerFirst, auth_message

RECORDED = {
    (each["client"], each["mechanism"]): [message.encode() for message in each["messages"]]
    for each in json.loads(Path(__file__).with_name("exchanges.json").read_text())
}
CLIENTS = ["librdkafka", "java", "aiokafka", "kafka-python"]
clients = pytest.mark.parametrize("client", CLIENTS)


def test_all_clients_were_recorded_with_all_mechanisms() -> None:
    mechanisms = ["PLAIN", *SCRAM_MECHANISMS, "OAUTHBEARER"]
    assert set(RECORDED) == {(client, mechanism) for client in CLIENTS for mechanism in mechanisms}


@clients
@pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS)
def test_scram(client: str, mechanism: str) -> None:
    chosen = SCRAM_MECHANISMS[mechanism]
    messages = RECORDED[client, mechanism]
    first, answer = ClientFirst.decode(messages[0]), ServerFirst.decode(messages[1])
    final, outcome = ClientFinal.decode(messages[2]), ServerFinal.decode(messages[3])
    assert [each.encode() for each in (first, answer, final, outcome)] == messages
    assert (first.username, first.authorization_id, first.flag, first.is_token) == ("alice", "", "n", False)

    credential = ScramCredential.from_password(chosen, "alice-secret", answer.salt, answer.iterations)
    signed = auth_message(first, answer, final)
    assert scram.is_proof(chosen, credential, signed, final.proof)
    assert outcome.signature == scram.server_signature(chosen, credential.server_key, signed)


@clients
@pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS)
def test_our_client_with_the_same_nonce_sends_the_same_proof(client: str, mechanism: str) -> None:
    messages = RECORDED[client, mechanism]
    nonce = ClientFirst.decode(messages[0]).nonce
    ours = ScramClient(SCRAM_MECHANISMS[mechanism], "alice", "alice-secret", nonce)
    ours.first()
    theirs = ClientFinal.decode(messages[2])
    assert ClientFinal.decode(ours.final(messages[1])) == theirs
    ours.verify(messages[3])


@clients
def test_plain(client: str) -> None:
    [message, answer] = RECORDED[client, "PLAIN"]
    decoded = PlainMessage.decode(message)
    assert (decoded.username, decoded.password, answer) == ("alice", "alice-secret", b"")
    assert decoded.authorization_id in ("", "alice")  # librdkafka and Java leave it out
    assert decoded.encode() == message


@clients
def test_oauthbearer(client: str) -> None:
    [message, answer] = RECORDED[client, "OAUTHBEARER"]
    decoded = ClientInitialResponse.decode(message)
    assert decoded.token.count(".") == 2
    assert (decoded.authorization_id, decoded.extensions, answer) == ("", (("traceId", "123"),), b"")
    assert decoded.encode() == message
