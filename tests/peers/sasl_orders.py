"""Requests in any order before and during authentication: Kafka's `SaslServerAuthenticator` as a table of states.

Each step is answered with an error code, a token or neither, or the connection is closed without an answer;
after the last answer in the state CLOSED it is closed, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tests.peers.sasl_scripts import CLOSED, WRONG, Bare, Step, authenticate, handshake, metadata, versions

STEPS: dict[str, Step] = {
    "versions": versions(),
    "handshake": handshake(),
    "unknown": handshake("GSSAPI"),
    "handshake 0": handshake(version=0),
    "unknown 0": handshake("GSSAPI", 0),
    "right": authenticate(),
    "wrong": authenticate(WRONG),
    "bare": Bare(b"\0alice\0secret"),
    "metadata": metadata(),
}

_REFUSED = {"handshake": (34, CLOSED), "unknown": (34, CLOSED), "handshake 0": (34, CLOSED), "unknown 0": (34, CLOSED)}

# The state and the step: the answer, and the next state. What is not here closes the connection without an answer.
TABLE: dict[str, dict[str, tuple[Any, str]]] = {
    "start": {
        "versions": (0, "negotiated"),
        "handshake": (0, "exchange"),
        "unknown": (33, CLOSED),
        "handshake 0": (0, "bare tokens"),
        "unknown 0": (33, CLOSED),
    },
    "negotiated": {
        "handshake": (0, "exchange"),
        "unknown": (33, CLOSED),
        "handshake 0": (0, "bare tokens"),
        "unknown 0": (33, CLOSED),
    },
    "exchange": {
        "versions": (34, CLOSED),
        **_REFUSED,
        "right": (0, "done"),
        "wrong": (58, CLOSED),
        "metadata": (0, CLOSED),
    },
    "bare tokens": {"bare": (b"", "done")},
    "done": {  # within a second of the authentication
        "versions": (0, "done"),
        "handshake": (34, "done"),
        "unknown": (34, "done"),
        "handshake 0": (34, "done"),
        "unknown 0": (34, "done"),
        "right": (34, "done"),
        "wrong": (34, "done"),
        "metadata": (0, "done"),
    },
    CLOSED: {},
}


def expected(names: Sequence[str]) -> list[Any]:
    """Return the answers to steps; the last one is `CLOSED` if a step is not answered."""
    return _follow(names)[0]


def orders(longest: int) -> Iterator[tuple[str, ...]]:
    """Return the sequences of up to `longest` steps, and one more if the last answer closes the connection."""
    found: list[tuple[str, ...]] = [()]
    while found:
        names = found.pop()
        answers, state = _follow(names)
        if state == CLOSED and answers[-1] != CLOSED:
            yield (*names, "metadata")
        elif state == CLOSED or len(names) == longest:
            yield names
        else:
            found += [(*names, name) for name in STEPS]


def _follow(names: Sequence[str]) -> tuple[list[Any], str]:
    """Return the answers, and the state after them."""
    state, answers = "start", []
    for name in names:
        answer, state = TABLE[state].get(name, (CLOSED, CLOSED))
        answers.append(answer)
        if answer == CLOSED:
            break
    return answers, state


def seen(answers: Sequence[Any]) -> list[Any]:
    """Return what `sasl_scripts.play` has seen in the form of `expected`."""
    return [each["error_code"] if isinstance(each, dict) else each for each in answers]
