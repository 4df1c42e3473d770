"""DescribeConfigs (API key 32)."""

from typing import Annotated

from protocol.schema import Message, Structure, boolean, i16, i32, i8, ignorable, message, since, string


class DescribeConfigsResource(Structure):
    resource_type: i8 = 0
    resource_name: string = ""
    configuration_keys: list[string] | None = []


@message(key=32, versions=(1, 4), flexible_since=4)
class DescribeConfigsRequest(Message):
    """DescribeConfigsRequest, versions 1–4, flexible from 4."""

    resources: list[DescribeConfigsResource] = []
    include_synonyms: boolean = False
    include_documentation: Annotated[boolean, since(3)] = False


class DescribeConfigsSynonym(Structure):
    name: string = ""
    value: string | None = ""
    source: i8 = 0


class DescribeConfigsResourceResult(Structure):
    name: string = ""
    value: string | None = ""
    read_only: boolean = False
    config_source: i8 = -1
    is_sensitive: boolean = False
    synonyms: list[DescribeConfigsSynonym] = []
    config_type: Annotated[i8, since(3), ignorable] = 0
    documentation: Annotated[string | None, since(3), ignorable] = ""


class DescribeConfigsResult(Structure):
    error_code: i16 = 0
    error_message: string | None = ""
    resource_type: i8 = 0
    resource_name: string = ""
    configs: list[DescribeConfigsResourceResult] = []


@message(key=32, versions=(1, 4), flexible_since=4)
class DescribeConfigsResponse(Message):
    """DescribeConfigsResponse, versions 1–4, flexible from 4."""

    throttle_time_ms: i32 = 0
    results: list[DescribeConfigsResult] = []
