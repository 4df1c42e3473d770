"""Reads for Fetch: incremental sessions, and the result of one read.

| module | what |
|---|---|
| `fetched_records` | the result of a read for a Fetch |
| `fetch_sessions`, `fetch_session` | incremental fetch sessions (KIP-227) |
"""
