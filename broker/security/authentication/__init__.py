"""Authentication by SASL: the server's side of each mechanism, as one object for each exchange.

| module | what |
|---|---|
| `exchange` | the interface of an exchange, and how it fails |
| `mechanisms` | the mechanisms of a listener, and their settings; creates exchanges |
| `plain_exchange` | PLAIN |
| `scram_exchange` | SCRAM-SHA-256 and SCRAM-SHA-512 |
| `unknown_users` | the credentials that SCRAM invents for users that do not exist |
| `oauthbearer_exchange` | OAUTHBEARER |
| `tokens` | the validation of OAUTHBEARER's tokens |

The messages are in `odradek.protocol.sasl`. Nothing here uses a socket (but `tokens`, to fetch keys) or the metadata
store: credentials are looked up by a function that the caller passes. The states of a connection before and between
exchanges are the server's.
"""
