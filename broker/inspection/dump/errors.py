"""The error that ends a dump, and the text that does not."""

from __future__ import annotations


class DumpError(Exception):
    """A file cannot be dumped further; the pieces before equal what Kafka's tool prints before it fails."""


class Complaint(str):
    """A piece of text for standard error; the dump goes on."""

    __slots__ = ()
