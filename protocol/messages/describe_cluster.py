"""DescribeCluster (API key 60)."""

from typing import Annotated

from protocol.schema import Message, Structure, boolean, i16, i32, i8, message, since, string


@message(key=60, versions=(0, 2), flexible_since=0)
class DescribeClusterRequest(Message):
    """DescribeClusterRequest, versions 0–2, flexible."""

    include_cluster_authorized_operations: boolean = False
    endpoint_type: Annotated[i8, since(1)] = 1
    include_fenced_brokers: Annotated[boolean, since(2)] = False


class DescribeClusterBroker(Structure):
    broker_id: i32 = 0
    host: string = ""
    port: i32 = 0
    rack: string | None = None
    is_fenced: Annotated[boolean, since(2)] = False


@message(key=60, versions=(0, 2), flexible_since=0)
class DescribeClusterResponse(Message):
    """DescribeClusterResponse, versions 0–2, flexible."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    endpoint_type: Annotated[i8, since(1)] = 1
    cluster_id: string = ""
    controller_id: i32 = -1
    brokers: list[DescribeClusterBroker] = []
    cluster_authorized_operations: i32 = -2147483648
