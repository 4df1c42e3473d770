"""Properties of quotas."""

from __future__ import annotations

from odradek.broker.config.bounds import at_least
from odradek.broker.config.property import Property, Table
from odradek.broker.config.types import INT

# fmt: off


class QuotaProperties(Table):
    """The windows over which the rates of clients are measured, and limits of single connections."""

    quota_window_num = Property(
        "quota.window.num", INT, 11, at_least(1),
        doc="The number of windows over which the rates of clients and of new connections are measured.",
    )
    quota_window_size_seconds = Property(
        "quota.window.size.seconds", INT, 1, at_least(1),
        doc="The seconds of each of these windows. `request_percentage` and limits of new connections throttle for one "
        "window at most.",
    )
    controller_quota_window_num = Property(
        "controller.quota.window.num", INT, 11, at_least(1),
        doc="The number of windows for which `controller_mutation_rate` may be used at once.",
    )
    controller_quota_window_size_seconds = Property(
        "controller.quota.window.size.seconds", INT, 1, at_least(1),
        doc="The seconds of each of these windows.",
    )
    socket_request_receive_timeout_ms = Property(
        "socket.request.receive.timeout.ms", INT, 30_000, at_least(1000), own=True,
        doc="The time in which a request must be complete after its first byte; else its connection is closed, up to "
        "ten seconds later.",
    )
