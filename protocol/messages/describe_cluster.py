"""DescribeCluster (API key 60): an admin client asks any broker for the cluster's id and its brokers (KIP-700).

What of Metadata is not about topics, without the cost of topics.
"""

from typing import Annotated

from odradek.protocol.schema import Message, Structure, boolean, i8, i16, i32, message, since, string


@message(key=60, versions=(0, 2), flexible_since=0)
class DescribeClusterRequest(Message):
    """Versions 0–2, flexible.

    v1 can ask for controllers instead of brokers, of a controller (KIP-919). v2 can ask for fenced brokers, too:
    registered, but not (or not again) in service (KIP-1073).
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

    v1 repeats the endpoint type, with the errors MISMATCHED_ENDPOINT_TYPE (114), for what this node is not, and
    UNSUPPORTED_ENDPOINT_TYPE (115) (KIP-919). v2 marks fenced brokers (KIP-1073).
    """

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = None
    endpoint_type: Annotated[i8, since(1)] = 1
    cluster_id: string = ""
    controller_id: i32 = -1  # from a broker of KRaft any live broker, since all forward; -1 none
    brokers: list[DescribeClusterBroker] = []
    cluster_authorized_operations: i32 = -2147483648
