"""Creating the authorizer: it has the rules of the metadata image, and follows their changes."""

from __future__ import annotations

from collections.abc import Iterable

from odradek.broker.metadata.image import ImageChange
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.security.access.standard_authorizer import StandardAuthorizer
from odradek.broker.security.principal import Principal


def make_authorizer(
    metadata: Metadata, super_users: Iterable[Principal], *, allow_everyone: bool
) -> StandardAuthorizer:
    """Return an authorizer that decides by the access rules of the cluster from now on.

    `allow_everyone` is `allow.everyone.if.no.acl.found`. A change of rules holds before the change is answered.
    """
    authorizer = StandardAuthorizer(super_users, metadata.image.rules, allow_everyone=allow_everyone)

    def follow(change: ImageChange) -> None:
        rules = change.after.rules
        if rules is not change.before.rules:
            authorizer.apply(*rules.change_since(change.before.rules))

    metadata.on_change(follow)
    return authorizer
