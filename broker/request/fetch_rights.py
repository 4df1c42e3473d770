"""The right to read of the sender of a Fetch: a follower reads everything, a consumer the topics that it may read.

| replica id | listener | without an authorizer | with one |
|---|---|---|---|
| none (-1, -2) | any | a consumer | a consumer |
| a broker's | that of brokers | a follower | a follower with ClusterAction, else refused |
| a broker's | another | a consumer | refused |

What is refused is TOPIC_AUTHORIZATION_FAILED for every partition (CVE-2018-1288).
"""

from __future__ import annotations

from odradek.broker.replication.fetch.fetch_session import WantedPartition
from odradek.broker.replication.partition import NO_REPLICA
from odradek.broker.request.context import RequestContext
from odradek.broker.request.rights import error_for, refusal_of, refusal_of_topic
from odradek.broker.request.services import Services
from odradek.protocol.access_rules import CLUSTER_NAME, Operation, ResourceType
from odradek.protocol.errors import KafkaError
from odradek.protocol.messages.fetch import FIRST_VERSION_WITH_TOPIC_IDS


class FetchRights:
    """The rights of the sender of one request. `replica_id` is that of a follower, -1 for all others."""

    __slots__ = ("_context", "_is_refused", "_services", "replica_id")

    def __init__(self, services: Services, context: RequestContext, replica_id: int) -> None:
        """`replica_id` is the one that the request claims."""
        self._services = services
        self._context = context
        self._is_refused = False
        self.replica_id = NO_REPLICA
        if replica_id >= 0:
            may_follow = context.listener_name == services.config.inter_broker_listener
            if services.authorizer is not None:
                missing = refusal_of(services, context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
                may_follow = may_follow and missing is None
                self._is_refused = not may_follow
            if may_follow:
                self.replica_id = replica_id

    def refusal_of(self, wanted: WantedPartition) -> KafkaError | None:
        """Return the error of a partition that the sender may not read, by the rules that hold now."""
        if self._is_refused:
            return error_for(ResourceType.TOPIC)
        if self.replica_id >= 0:
            return None
        by_id = self._context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
        return refusal_of_topic(
            self._services, self._context, Operation.READ, wanted.topic, wanted.topic_id, by_id=by_id
        )
