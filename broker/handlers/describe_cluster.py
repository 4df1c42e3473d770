"""DescribeCluster (60), versions 0–2: the brokers, the controller and the cluster id (KIP-700).

Version 1 names the kind of endpoint (KIP-919): 1 brokers, 2 controllers. Controllers have no endpoints of their own, so
kind 2 is MISMATCHED_ENDPOINT_TYPE, as from an Apache Kafka broker. From version 2 on a request may include fenced
brokers: those that are starting, and those that are down and were not unregistered. The authorized operations
are set if the request includes them; without Describe on the cluster there are none.
"""

from __future__ import annotations

from odradek.broker.request.authorized_operations import NOT_REQUESTED, operations_on_cluster
from odradek.broker.request.context import RequestContext
from odradek.broker.request.endpoints import administrator, broker_endpoints, fenced_endpoints
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
        if request.endpoint_type == _CONTROLLERS:
            raise KafkaError(
                ErrorCode.MISMATCHED_ENDPOINT_TYPE,
                "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
            )
        raise KafkaError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    image = services.metadata.image
    brokers = [DescribeClusterBroker(*endpoint) for endpoint in broker_endpoints(services, context)]
    if request.include_fenced_brokers:
        fenced = fenced_endpoints(services, context)
        brokers += [DescribeClusterBroker(*endpoint, is_fenced=True) for endpoint in fenced]
    return DescribeClusterResponse(
        endpoint_type=_BROKERS,
        cluster_id=image.cluster_id or "",
        controller_id=administrator(services),
        brokers=brokers,
        cluster_authorized_operations=(
            operations_on_cluster(services, context) if request.include_cluster_authorized_operations else NOT_REQUESTED
        ),
    )


def error_response(request: DescribeClusterRequest, code: ErrorCode, message: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=code, error_message=message)
