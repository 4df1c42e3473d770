"""DescribeConfigs (API key 32): an admin client reads the configs of topics, brokers, groups and loggers (KIP-133).

Any broker returns the configs of topics; only the broker itself returns its own configs and loggers.
"""

from typing import Annotated

from odradek.protocol.schema import Message, Structure, boolean, i8, i16, i32, ignorable, message, since, string


class DescribeConfigsResource(Structure):
    resource_type: i8 = 0  # 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group
    # Name of a topic, group or subscription; a broker's id in digits, or empty for the cluster-wide default.
    resource_name: string = ""
    configuration_keys: list[string] | None = []  # None for all


@message(key=32, versions=(1, 4), flexible_since=4)
class DescribeConfigsRequest(Message):
    """Versions 1–4, flexible from 4.

    Kafka 4.0 dropped v0 (KIP-896). v1 can request synonyms (KIP-226), v3 documentation (KIP-569). With v2 a client
    declares that it waits for the throttle time itself (KIP-219).
    """

    resources: list[DescribeConfigsResource] = []
    include_synonyms: boolean = False  # whether to return every level at which the config is set
    include_documentation: Annotated[boolean, since(3)] = False


class DescribeConfigsSynonym(Structure):
    """A level at which the config is set, with its name there. The first in the list is in force."""

    name: string = ""
    value: string | None = ""
    source: i8 = 0  # as `config_source` below


class DescribeConfigsResourceResult(Structure):
    name: string = ""
    value: string | None = ""  # None when sensitive
    read_only: boolean = False  # cannot be changed while the broker runs
    # 1 topic, 2 this broker, 3 all brokers, 4 server.properties, 5 default, 6 logger, 7 client metrics, 8 group.
    config_source: i8 = -1
    is_sensitive: boolean = False
    synonyms: list[DescribeConfigsSynonym] = []
    # 0 unknown, 1 boolean, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, 9 password.
    config_type: Annotated[i8, since(3), ignorable] = 0
    documentation: Annotated[string | None, since(3), ignorable] = ""  # None unless requested


class DescribeConfigsResult(Structure):
    error_code: i16 = 0
    error_message: string | None = ""
    resource_type: i8 = 0
    resource_name: string = ""
    configs: list[DescribeConfigsResourceResult] = []


@message(key=32, versions=(1, 4), flexible_since=4)
class DescribeConfigsResponse(Message):
    """Versions 1–4, flexible from 4.

    v1 replaces "is default" by the source and adds synonyms (KIP-226). v3 adds the type and, on request, the
    documentation (KIP-569).
    """

    throttle_time_ms: i32 = 0
    results: list[DescribeConfigsResult] = []
