"""What ends a dump, and what is only said about a file."""

from __future__ import annotations


class DumpError(Exception):
    """A file cannot be dumped further; what was yielded until then is what Kafka's tool prints until then."""


class Complaint(str):
    """A piece of text for standard error; the dump goes on."""

    __slots__ = ()
