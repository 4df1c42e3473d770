"""Client quotas: who is limited to how much, what each client has used, and for how long it must wait.

| module | what |
|---|---|
| `entities` | the entities that quotas are set for, and the kinds of limits; Kafka's checks of both |
| `limits` | the limit that holds for a client, by Kafka's precedence |
| `samples` | rates and averages over sampled windows |
| `token_bucket` | the bucket of controller mutations (KIP-599) |
| `usage` | the use of one client, and its throttle time |
| `client_quotas` | the use of all clients, in bounded memory |
| `connection_rates` | rates of new connections: of the broker, a listener, an address |

No module uses a socket, the event loop, a clock or the metadata store. Each takes the time as an argument: monotonic
seconds. Throttle times are whole milliseconds, as in Kafka's responses.
"""
