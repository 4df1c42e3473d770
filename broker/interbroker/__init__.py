"""This broker as a client of the other brokers of its cluster. Imported only if there may be others.

| module | what |
|---|---|
| `connections` | the connections, one for each broker and purpose, at the listener that brokers use among themselves |

It is the only part of the broker that uses the client: its connections negotiate versions, match responses to requests
and time out in the same way.
"""
