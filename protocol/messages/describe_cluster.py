"""DescribeCluster (API key 60): an admin client reads the cluster's id and its brokers from any broker (KIP-700).

It replaces Metadata where topics are not needed.
"""

from typing import Annotated

from odradek.protocol.schema import Message, Structure, boolean, i8, i16, i32, message, since, string


@message(key=60, versions=(0, 2), flexible_since=0)
class DescribeClusterRequest(Message):
    """Versions 0–2, flexible.

    v1 can request controllers instead of brokers, from a controller (KIP-919). v2 can also request fenced brokers,
    which are registered but not in service (KIP-1073).
    """

    include_cluster_authorized_operations: boolean = False
    endpoint_type: Annotated[i8, since(1)] = 1  # 1 brokers, 2 controllers
    include_fenced_brokers: Annotated[boolean, since(2)] = False


class DescribeClusterBroker(Structure):
    broker_id: i32 = 0
    host: string = ""
    port: i32 = 0
    rack: string | None = None
    is_fenced: Annotated[boolean, since(2)] = False


@message(key=60, versions=(0, 2), flexible_since=0)
class DescribeClusterResponse(Message):
    """Versions 0–2, flexible.

    v1 repeats the endpoint type. It adds MISMATCHED_ENDPOINT_TYPE (114), for a node of the other type, and
    UNSUPPORTED_ENDPOINT_TYPE (115) (KIP-919). v2 marks fenced brokers (KIP-1073).
    """

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    endpoint_type: Annotated[i8, since(1)] = 1
    cluster_id: string = ""
    controller_id: i32 = -1  # any live broker under KRaft, because all forward to the controller; -1 none
    brokers: list[DescribeClusterBroker] = []
    cluster_authorized_operations: i32 = -2147483648
