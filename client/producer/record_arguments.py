"""The error for an argument of `Producer.send` that has a wrong type.

`send` checks no types. If building the record fails, this module finds the argument that caused it, so a valid record
pays nothing for the check.
"""

from __future__ import annotations

from typing import Any, NamedTuple

_DATA = (bytes, bytearray, memoryview)


class RecordArguments(NamedTuple):
    """The arguments of `send`, of any types; key and value as the serializers, if any, returned them."""

    value: Any
    key: Any
    partition: Any
    headers: Any
    timestamp: Any


def argument_type_error(
    arguments: RecordArguments, *, key_serializer: bool, value_serializer: bool
) -> TypeError | None:
    """Return the error for the first argument of a wrong type, or None. The flags name the parts with a serializer."""
    value, key, partition, headers, timestamp = arguments
    if not _is_data(value):
        return _data_type_error("value", value, is_serialized=value_serializer)
    if not _is_data(key):
        return _data_type_error("key", key, is_serialized=key_serializer)
    if partition is not None and not isinstance(partition, int):
        return TypeError(f"partition must be an int or None, not {_type(partition)}")
    if timestamp is not None and not isinstance(timestamp, int):
        return TypeError(f"timestamp must be an int (ms since the epoch) or None, not {_type(timestamp)}")
    return _headers_type_error(headers) if headers else None


def _is_data(part: Any) -> bool:
    return part is None or isinstance(part, _DATA)


def _data_type_error(name: str, part: Any, *, is_serialized: bool) -> TypeError:
    if is_serialized:
        return TypeError(f"{name}_serializer must return bytes or None, not {_type(part)}")
    cure = "encode it" if isinstance(part, str) else "serialize it"
    return TypeError(
        f"{name} must be bytes or None, not {_type(part)}: {cure}, or give the producer a {name}_serializer"
    )


def _headers_type_error(headers: Any) -> TypeError | None:
    if not isinstance(headers, (list, tuple)):
        cure = ": pass list(headers.items())" if isinstance(headers, dict) else ""
        return TypeError(f"headers must be a list of pairs (str, bytes or None), not {_type(headers)}{cure}")
    for index, header in enumerate(headers):
        if not isinstance(header, (list, tuple)) or len(header) != 2:
            of = f" of {len(header)}" if isinstance(header, (list, tuple)) else ""
            return TypeError(f"headers[{index}] must be a pair (str, bytes or None), not {_type(header)}{of}")
        name, value = header
        if not isinstance(name, str):
            return TypeError(f"the key of headers[{index}] must be str, not {_type(name)}")
        if not _is_data(value):
            return TypeError(f"the value of headers[{index}] must be bytes or None, not {_type(value)}: encode it")
    return None


def _type(argument: Any) -> str:
    return type(argument).__name__
