"""The calls of `Admin` about access rules, users and quotas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from odradek.client.admin import acls, client_quotas, scram_users
from odradek.client.admin.acl_values import EVERY_RULE, AclFilter, AclRule
from odradek.client.admin.client_quotas import EVERY_QUOTA, QuotaEntity, QuotaFilter
from odradek.client.admin.lifecycle import AdminLifecycle
from odradek.client.admin.results import Results
from odradek.client.admin.scram_users import ScramCredentialInfo, ScramDeletion, ScramUpsertion


class SecurityCalls(AdminLifecycle):
    """Without an authorizer the brokers refuse the calls about access rules: SECURITY_DISABLED."""

    async def create_acls(self, rules: Iterable[AclRule], *, timeout_ms: int | None = None) -> Results[AclRule, None]:
        """Create access rules; one that exists stays. Errors of an item: AuthorizationError, BrokerError."""
        return await acls.create_acls(self._calls, rules, timeout_ms=timeout_ms)

    async def describe_acls(
        self, wanted: AclFilter = EVERY_RULE, *, timeout_ms: int | None = None
    ) -> tuple[AclRule, ...]:
        """The access rules that fulfil all conditions. Raises ClientError."""
        return await acls.describe_acls(self._calls, wanted, timeout_ms=timeout_ms)

    async def delete_acls(
        self, filters: Iterable[AclFilter], *, timeout_ms: int | None = None
    ) -> Results[AclFilter, tuple[AclRule, ...]]:
        """Delete the access rules that each filter finds, and return them. `AclRule.filter` finds one rule."""
        return await acls.delete_acls(self._calls, filters, timeout_ms=timeout_ms)

    async def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None, *, timeout_ms: int | None = None
    ) -> Results[str, tuple[ScramCredentialInfo, ...]]:
        """The SCRAM credentials of users (None: all who have any), without their secrets.

        Errors of an item: BrokerError (RESOURCE_NOT_FOUND: the user has none). Raises ClientError without `users`.
        """
        return await scram_users.describe_users(self._calls, users, timeout_ms=timeout_ms)

    async def alter_user_scram_credentials(
        self, changes: Iterable[ScramUpsertion | ScramDeletion], *, timeout_ms: int | None = None
    ) -> Results[str, None]:
        """Set and delete the passwords of users. The password is salted here; the broker does not see it.

        Errors of a user: AuthorizationError, BrokerError (UNACCEPTABLE_CREDENTIAL, RESOURCE_NOT_FOUND,
        DUPLICATE_RESOURCE).
        """
        return await scram_users.alter_users(self._calls, changes, timeout_ms=timeout_ms)

    async def describe_client_quotas(
        self, wanted: QuotaFilter = EVERY_QUOTA, *, timeout_ms: int | None = None
    ) -> dict[QuotaEntity, dict[str, float]]:
        """The quotas of the entities that fulfil all conditions, each by its key. Raises ClientError.

        Keys: `producer_byte_rate`, `consumer_byte_rate`, `request_percentage`, `controller_mutation_rate`;
        `connection_creation_rate` of an address.
        """
        return await client_quotas.describe_client_quotas(self._calls, wanted, timeout_ms=timeout_ms)

    async def alter_client_quotas(
        self,
        changes: Mapping[QuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[QuotaEntity, None]:
        """Set quotas, or with None remove them. Errors of an entity: AuthorizationError, BrokerError."""
        return await client_quotas.alter_client_quotas(
            self._calls, changes, validate_only=validate_only, timeout_ms=timeout_ms
        )
