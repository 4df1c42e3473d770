"""The things that every handler works with: the request's context, the broker's services, and shared parts of answers.

Both `server` and `handlers` import this package; it imports neither.

| module | what |
|---|---|
| `context` | the connection and the header of the request |
| `handler` | a handler, and the row that describes its API |
| `services` | the parts of the broker that handlers may use |
| `time_slices` | long requests executed a few milliseconds at a time |
| `throttling`, `throttled_fetch` | client quotas: what a request is charged with; a Fetch that is over its quota |
| `encoded_topics` | the rows of topics in Metadata responses, encoded once |
| `endpoints` | the addresses of brokers and leaders, for the client of a request |
| `authentication`, `authenticators` | the authentication of a connection: SASL; its beginning |
| `audit`, `audited_changes` | the audit log: who did what, and who was refused; what counts as a change |
| `topic_log` | the log of topics: who created, altered or deleted which |
| `line_fields` | who a line in a log is about |
| `line_limits` | the bound of lines in a log that clients cause, for each client and for all |
| `certificates` | the certificates of listeners, which a change of properties loads again |
| `rights` | what the client of a request may do |
| `repetitions` | requests that name the same partition or group more than once |
| `fetch_rights`, `fetch_rows` | what the sender of a Fetch may read; rows without records |
| `authorized_operations` | the operations that a client may perform (KIP-430) |
| `transactional_produce` | the transactional batches of a Produce request, and their verification |
| `group_ids` | the check of group ids |
| `transactional_ids` | the check of transactional ids, and events for their coordinator |
| `config_resources`, `broker_loggers` | the resources whose properties can be described and altered |
| `row_errors` | the error of one partition's row after a defect of the broker |
"""
