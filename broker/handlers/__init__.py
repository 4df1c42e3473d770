"""What the broker does with each request: one module per API, named as in `odradek.protocol.messages`.

A module has `handle(services, context, request)`, which returns the response, an awaitable of it or None, and
`error_response(request, code, message)`. `table` says which versions are served, `not_served` why the others are not.

Beside them: `services` is what handlers work with; `endpoints` the addresses that clients are told; `config_resources`
and `broker_loggers` what the APIs of configurations share; `group_requests` what those of groups share;
`refused_batches` and `defects` what becomes of a partition that fails; `read_only` the table of a read-only broker;
`authorized_operations` what a client may do; `docs` makes docs/apis.md.
"""
