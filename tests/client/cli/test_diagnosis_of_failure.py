"""What `doctor` says behind the error of a command, where it says more."""

from __future__ import annotations

import pytest

from odradek.broker.broker import Broker
from odradek.client.cli import diagnosis_of_failure
from odradek.client.cli.diagnosis_of_failure import needs_diagnosis
from odradek.client.errors import (
    AuthenticationFailedError,
    BootstrapError,
    BrokerUnreachableError,
    ClientError,
    ConfigurationError,
    ConnectionLostError,
    NotKafkaError,
    PossiblyPersistedError,
    TimeLimitError,
    TlsError,
    UnknownTopicError,
    broker_error,
)
from odradek.protocol.errors import ErrorCode
from tests.client.cli.commands import run
from tests.client.doctor.listeners import listening, silent, web

IMPATIENT = ("--command-property", "connect.timeout.ms=300", "--command-property", "default.api.timeout.ms=1000")


@pytest.fixture(autouse=True)
def much_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine with other work a check may need longer than a user waits for it."""
    monkeypatch.setattr(diagnosis_of_failure, "_SECONDS", 60)
    monkeypatch.setattr(diagnosis_of_failure, "_STEP_SECONDS", 30)


def of_bootstrap(*failures: ClientError) -> BootstrapError:
    error = BootstrapError("find the cluster", "none responds")
    error.failures = failures
    return error


def refused(broker: str) -> BrokerUnreachableError:
    return BrokerUnreachableError("connect", "connection refused", broker=broker)


def unknown(broker: str) -> BrokerUnreachableError:
    error = BrokerUnreachableError("connect", "the name cannot be resolved", broker=broker)
    error.is_unknown_host = True
    return error


def in_doubt(cause: ClientError) -> PossiblyPersistedError:
    error = PossiblyPersistedError(cause.tried, cause.cause)
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "is_asked"),
    [
        (of_bootstrap(refused("a:1"), unknown("b:2")), False),
        (of_bootstrap(refused("a:1"), refused("c:3 (broker 3)")), True),
        (of_bootstrap(unknown("c:3 (broker 3)")), True),
        (of_bootstrap(BrokerUnreachableError("connect", "no response", broker="a:1")), True),
        (NotKafkaError("read", "an HTTP server"), True),
        (TlsError("connect", "not trusted"), True),
        (ConnectionLostError("read", "closed"), True),
        (TimeLimitError("list topics", "no response"), True),
        (in_doubt(TimeLimitError("send", "no response")), True),
        (in_doubt(broker_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "send")), False),
        (broker_error(ErrorCode.LEADER_NOT_AVAILABLE, "send"), True),
        (broker_error(ErrorCode.NOT_ENOUGH_REPLICAS, "send"), True),
        (UnknownTopicError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "send"), False),
        (broker_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "send"), False),
        (AuthenticationFailedError("authenticate", "refused"), False),
        (ConfigurationError("configure", "wrong"), False),
        (OSError("no file"), False),
        (ValueError("no partition 7"), False),
    ],
    ids=str,
)
def test_doctor_is_asked_where_it_may_say_more(error: BaseException, is_asked: bool) -> None:
    assert needs_diagnosis(error, "a:1, b:2") is is_asked


async def test_an_advertised_address_that_refuses_is_explained_with_its_cure() -> None:
    async with Broker({"advertised.listeners": "PLAINTEXT://127.0.0.1:1"}) as broker:
        at = ("--bootstrap-server", f"127.0.0.1:{broker.port}")
        for command in (("topics", "list"), ("consume", "--topic", "t"), ("groups", "list")):
            _, err = await run(*command, *at, *IMPATIENT, status=1)
            error, doctor = err.splitlines()
            assert error.startswith("error: ")
            assert doctor.startswith("doctor: broker 1, advertised as 127.0.0.1:1: no connection (")
            assert "Set advertised.listeners of broker 1 to what clients can reach" in doctor


async def test_a_web_server_is_recognised() -> None:
    async with listening(web) as address:
        _, err = await run("topics", "list", "--bootstrap-server", address, status=1)
    assert err.splitlines()[1:] == [
        f"doctor: {address}: a web server responds, not a Kafka broker. Use the port of the broker's listener."
    ]


async def test_settings_of_another_client_do_not_stop_the_diagnosis() -> None:
    async with listening(web) as address:
        of_consumer = ("--command-property", "auto.offset.reset=earliest")
        _, err = await run("consume", "--topic", "t", "--bootstrap-server", address, *of_consumer, *IMPATIENT, status=1)
    assert f"doctor: {address}: a web server responds" in err


async def test_a_server_that_never_answers_is_given_little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening(silent) as address:
        listing = ("topics", "list", "--bootstrap-server", address, *IMPATIENT)
        monkeypatch.setattr(diagnosis_of_failure, "_STEP_SECONDS", 0.5)
        _, err = await run(*listing, status=1)
        assert f"doctor: {address}: it accepts connections and does not respond." in err
        monkeypatch.setattr(diagnosis_of_failure, "_SECONDS", 0)
        _, err = await run(*listing, status=1)
        assert err.count("\n") == 1


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere.invalid:9092"])
async def test_a_refused_connection_and_an_unknown_name_are_one_line(address: str) -> None:
    _, err = await run("topics", "list", "--bootstrap-server", address, status=1)
    assert err.startswith(f"error: find the cluster: {address}: ")
    assert err.count("\n") == 1


async def test_doctor_does_not_ask_itself() -> None:
    async with listening(web) as address:
        out, err = await run("doctor", "--bootstrap-server", address, status=1)
    assert len(out) == 1
    assert err == ""


async def test_what_the_error_says_already_is_not_repeated() -> None:
    async with Broker({}) as broker:
        at = ("--bootstrap-server", f"127.0.0.1:{broker.port}", "--command-property", "security.protocol=SSL")
        _, err = await run("topics", "list", *at, status=1)
    (error,) = err.splitlines()
    assert "the peer ended the TLS handshake" in error
