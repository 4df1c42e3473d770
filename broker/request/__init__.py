"""What a handler gets with a request: its context, and the services of the broker.

| module | what |
|---|---|
| `context` | what a handler is told about the connection and the request that it answers |
| `services` | what handlers may use: the parts of one broker, typed, and nothing else |
"""
