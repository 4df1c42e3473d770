"""DescribeCluster (60), versions 0–2: the brokers, the controller and the cluster id (KIP-700).

Version 1 names the kind of endpoint (KIP-919): 1 brokers, 2 controllers. Controllers have no endpoints of their own, so
kind 2 is MISMATCHED_ENDPOINT_TYPE, as from an Apache Kafka broker. Version 2 may request fenced brokers; there are
none, because a broker without a session is not registered. Without access rules, the authorized operations are all
operations on a cluster, if the request includes them.
"""

from __future__ import annotations

from odradek.broker.request.authorized_operations import ALL_CLUSTER_OPERATIONS, NOT_REQUESTED
from odradek.broker.request.context import RequestContext
from odradek.broker.request.endpoints import administrator, broker_endpoints
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

_BROKERS = 1
_CONTROLLERS = 2


def handle(services: Services, context: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    if request.endpoint_type != _BROKERS:
        known = request.endpoint_type == _CONTROLLERS
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE if known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        raise KafkaError(code, f"a broker does not serve endpoint type {request.endpoint_type}")
    image = services.metadata.image
    return DescribeClusterResponse(
        endpoint_type=_BROKERS,
        cluster_id=image.cluster_id or "",
        controller_id=administrator(services),
        brokers=[DescribeClusterBroker(*endpoint) for endpoint in broker_endpoints(services, context)],
        cluster_authorized_operations=(
            ALL_CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_REQUESTED
        ),
    )


def error_response(request: DescribeClusterRequest, code: ErrorCode, message: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=code, error_message=message)
