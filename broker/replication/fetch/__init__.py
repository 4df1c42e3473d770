"""Reads for Fetch: incremental sessions, and the result of one read.

| module | what |
|---|---|
| `available_bytes` | the bytes that a parked fetch could return |
| `fetched_records` | the result of a read for a Fetch |
| `fetch_sessions`, `fetch_session` | incremental fetch sessions (KIP-227) |
"""
