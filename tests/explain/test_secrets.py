from __future__ import annotations

import pytest

from odradek.broker.explain.copying import MessageCopy
from odradek.broker.explain.events import Exchange, RequestReceived
from odradek.broker.explain.secrets import hidden_fields
from odradek.broker.explain.text import event_lines
from odradek.protocol.api import NAMES, by_key
from odradek.protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from odradek.protocol.messages.create_delegation_token import CreateDelegationTokenResponse
from odradek.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from odradek.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribeDelegationTokenResponse,
)
from odradek.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from odradek.protocol.messages.incremental_alter_configs import AlterableConfig as IncrementalConfig
from odradek.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource as IncrementalResource,
)
from odradek.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from odradek.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.schema import Message, Scalar, Structure, fields, spec

SECRET = "hunter2"
BYTES = SECRET.encode()
PASSWORD = "ssl.keystore.password"


def described(name: str, *, sensitive: bool = False) -> DescribeConfigsResponse:
    row = DescribeConfigsResourceResult(
        name, SECRET, is_sensitive=sensitive, synonyms=[DescribeConfigsSynonym(name, SECRET)]
    )
    return DescribeConfigsResponse(results=[DescribeConfigsResult(configs=[row])])


MESSAGES = [
    SaslAuthenticateRequest(BYTES),
    SaslAuthenticateResponse(auth_bytes=BYTES),
    AlterUserScramCredentialsRequest([], [ScramCredentialUpsertion("alice", 1, 4096, BYTES, BYTES)]),
    CreateDelegationTokenResponse(hmac=BYTES),
    DescribeDelegationTokenResponse(tokens=[DescribedDelegationToken(hmac=BYTES)]),
    RenewDelegationTokenRequest(BYTES),
    ExpireDelegationTokenRequest(BYTES),
    AlterConfigsRequest([AlterConfigsResource(4, "1", [AlterableConfig(PASSWORD, SECRET)])]),
    AlterConfigsRequest([AlterConfigsResource(4, "1", [AlterableConfig("listener.name.x.ssl.key.password", SECRET)])]),
    IncrementalAlterConfigsRequest([IncrementalResource(4, "1", [IncrementalConfig(PASSWORD, 0, SECRET)])]),
    CreateTopicsRequest([CreatableTopic("t", configs=[CreatableTopicConfig("a.plugin.secret", SECRET)])]),
    described(PASSWORD),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_secrets_are_hidden(message: Message) -> None:
    copy = MessageCopy(message, spec(type(message)).last_version, {}.get)
    text = "\n".join(event_lines(RequestReceived(Exchange(1, 0, ("h", 1), None, "A", 0, 0), copy.fields, copy.size)))

    assert "(hidden)" in text
    assert SECRET not in text
    assert BYTES.hex() not in text


def test_a_sensitive_value_is_hidden_whatever_its_name() -> None:
    assert SECRET not in str(
        MessageCopy(described("retention.ms", sensitive=True), 4, {}.get).fields["results"][0]["configs"][0]["value"]
    )


def test_other_configs_are_shown() -> None:
    request = AlterConfigsRequest([AlterConfigsResource(2, "t", [AlterableConfig("retention.ms", "1000")])])

    assert MessageCopy(request, 2, {}.get).fields["resources"][0]["configs"][0]["value"] == "1000"


def structures(cls: type[Structure]) -> set[type[Structure]]:
    found = {cls}
    for field in fields(cls):
        if not isinstance(field.kind, Scalar):
            found |= structures(field.kind)
    return found


HARMLESS_BYTES = {"assignment", "member_assignment", "member_metadata", "metadata", "metrics"}
HARMLESS_TEXTS = {"token_id", "token_requester_principal_name", "token_requester_principal_type"}


def test_every_field_of_bytes_is_hidden_or_known_to_be_harmless() -> None:
    """A new message with a secret fails here, or in the next test: add its field to `secrets`."""
    messages = [message for key in NAMES for message in (by_key(key).request, by_key(key).response)]
    shown = {
        field.name
        for message in messages
        for structure in structures(message)
        for field in fields(structure)
        if getattr(field.kind, "name", "") == "bytes" and field.name not in hidden_fields(structure())
    }

    assert shown == HARMLESS_BYTES


def test_no_text_that_sounds_secret_is_shown() -> None:
    messages = [message for key in NAMES for message in (by_key(key).request, by_key(key).response)]
    texts = {
        field.name
        for message in messages
        for structure in structures(message)
        for field in fields(structure)
        if getattr(field.kind, "name", "") == "string"
    }

    assert {name for name in texts if any(word in name for word in ("password", "secret", "token"))} == HARMLESS_TEXTS
