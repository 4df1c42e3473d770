"""The errors of commands as they are printed: settings as properties, the nearest name of a topic that is not there."""

from __future__ import annotations

import argparse
from asyncio import timeout
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from odradek.argument_parser import nearest
from odradek.client.cli import fail
from odradek.client.cli.arguments.connection_arguments import settings_of_each
from odradek.client.cli.diagnosis_of_failure import needs_diagnosis, print_diagnosis
from odradek.client.cli.output.property_names import error_text
from odradek.client.errors import ClientError, UnknownTopicError

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin

_TIMEOUT_SECONDS = 2  # of the list of topics, which only makes an error clearer


async def report_failure(error: BaseException, arguments: argparse.Namespace) -> int:
    """Print the error that ended a command, and return the exit status of a failure. Never raises ClientError.

    What `doctor` finds follows, if it may say more.
    """
    text = error_text(error)
    if isinstance(error, UnknownTopicError):
        from odradek.client.admin.admin import Admin
        from odradek.client.consumer.consumer import Consumer
        from odradek.client.producer.producer import Producer

        try:
            settings, *_ = settings_of_each(arguments, Admin, Consumer, Producer)
            async with timeout(_TIMEOUT_SECONDS), Admin(arguments.bootstrap_server, **settings) as admin:
                [text] = await texts_of(admin, [error])
        except (ClientError, TimeoutError):
            pass  # the cluster has failed meanwhile
    status = fail(text)
    if needs_diagnosis(error, arguments.bootstrap_server):
        await print_diagnosis(arguments, text)
    return status


async def texts_of(admin: Admin, errors: Iterable[BaseException]) -> list[str]:
    """Return the messages of errors, each once. Those about topics that do not exist have the nearest name."""
    topics: Collection[str] | None = None
    texts = []
    for error in errors:
        text = error_text(error)
        if isinstance(error, UnknownTopicError) and error.topic is not None:
            if topics is None:
                topics = await _topics(admin)
            if topics is not None and error.topic not in topics:
                text = no_topic(error.topic, topics)
        texts.append(text)
    return list(dict.fromkeys(texts))


def no_topic(topic: str, topics: Iterable[str]) -> str:
    """Return the message that there is no such topic; `topics` are those that exist."""
    near = nearest(topic, topics)
    return f"there is no topic {topic}{f'; {near}' if near else '. Check its name, or create it'}"


async def _topics(admin: Admin) -> Collection[str] | None:
    try:
        return await admin.list_topics(include_internal=True, timeout_ms=_TIMEOUT_SECONDS * 1000)
    except ClientError:
        return None
