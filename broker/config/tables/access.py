"""Properties of access rules."""

from __future__ import annotations

from odradek.broker.config.bounds import one_of
from odradek.broker.config.property import Property, Table
from odradek.broker.config.types import BOOLEAN, STRING

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

# A row is read as a row: name, type, default and bound stay on one line.
# fmt: off


class AccessProperties(Table):
    """Access rules."""

    authorizer_class_name = Property(
        "authorizer.class.name", STRING, "", one_of("", STANDARD_AUTHORIZER),
        doc=f"{STANDARD_AUTHORIZER} turns access rules on; empty: everybody may do everything. No class is loaded.",
        differs="other classes are refused.",
    )
    super_users = Property(
        "super.users", STRING, "", own=True,
        doc="Principals that may do everything, whatever the rules, separated by semicolons: User:admin;User:CN=one. "
        "Of Kafka's authorizer.",
    )
    allow_everyone_if_no_acl_found = Property(
        "allow.everyone.if.no.acl.found", BOOLEAN, False, own=True,
        doc="Whether everybody may use a resource that no rule is about. Of Kafka's authorizer.",
    )
