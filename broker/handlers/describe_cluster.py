"""DescribeCluster (60), versions 0–2: the brokers, the controller and the cluster's id (KIP-700).

Version 1 names the kind of endpoint (KIP-919): 1 brokers, 2 controllers; there are no controllers to talk to apart
from the brokers, so anything but 1 is MISMATCHED_ENDPOINT_TYPE, as from an Apache Kafka broker. Version 2 may ask for
fenced brokers too: none is known, because a broker without a session is not registered. There are no access
rules yet, so the authorized operations, where asked for, are all operations on a cluster.
"""

from __future__ import annotations

from odradek.broker.request.authorized_operations import ALL_CLUSTER_OPERATIONS, NOT_ASKED
from odradek.broker.request.context import RequestContext
from odradek.broker.request.endpoints import broker_endpoints
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
        raise KafkaError(code, f"endpoint type {request.endpoint_type} was asked for at a broker")
    image = services.metadata.image
    return DescribeClusterResponse(
        endpoint_type=_BROKERS,
        cluster_id=image.cluster_id or "",
        controller_id=image.controller_id,
        brokers=[DescribeClusterBroker(*endpoint) for endpoint in broker_endpoints(services, context)],
        cluster_authorized_operations=(
            ALL_CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def error_response(request: DescribeClusterRequest, code: ErrorCode, message: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=code, error_message=message)
