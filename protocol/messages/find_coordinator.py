"""FindCoordinator (API key 10)."""

from typing import Annotated

from protocol.schema import Message, Structure, i16, i32, i8, ignorable, message, since, string, until


@message(key=10, versions=(0, 6), flexible_since=3)
class FindCoordinatorRequest(Message):
    """FindCoordinatorRequest, versions 0–6, flexible from 3."""

    key: Annotated[string, until(3)] = ""
    key_type: Annotated[i8, since(1)] = 0
    coordinator_keys: Annotated[list[string], since(4)] = []


class Coordinator(Structure):
    key: Annotated[string, since(4)] = ""
    node_id: Annotated[i32, since(4)] = 0
    host: Annotated[string, since(4)] = ""
    port: Annotated[i32, since(4)] = 0
    error_code: Annotated[i16, since(4)] = 0
    error_message: Annotated[string | None, since(4), ignorable] = ""


@message(key=10, versions=(0, 6), flexible_since=3)
class FindCoordinatorResponse(Message):
    """FindCoordinatorResponse, versions 0–6, flexible from 3."""

    throttle_time_ms: Annotated[i32, since(1), ignorable] = 0
    error_code: Annotated[i16, until(3)] = 0
    error_message: Annotated[string | None, since(1), until(3), ignorable] = ""
    node_id: Annotated[i32, until(3)] = 0
    host: Annotated[string, until(3)] = ""
    port: Annotated[i32, until(3)] = 0
    coordinators: Annotated[list[Coordinator], since(4)] = []
