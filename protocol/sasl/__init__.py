"""The messages of SASL mechanisms (RFC 4422), for servers and clients alike: bytes to values, values to bytes.

SaslAuthenticate (`protocol/messages`) carries these messages as opaque bytes. Nothing here reads the time, draws a
random number or uses a socket: nonces and salts are arguments.

| module | what |
|---|---|
| `scram` | the computations of SCRAM: keys, proofs, signatures; the credential that a server stores |
| `scram_messages` | the four messages of SCRAM |
| `scram_client` | the client's side of one SCRAM exchange |
| `plain` | the one message of PLAIN |
| `oauthbearer` | the client's message and the server's JSON error of OAUTHBEARER |
| `gs2` | what SCRAM and OAUTHBEARER share: the GS2 header, the escapes of names, extensions |
| `errors` | the exceptions |

Every decoder is strict: it raises `SaslMessageError`, or returns a value whose `encode` gives the same message again.
"""
