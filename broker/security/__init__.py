"""Who a client is, and what it may do: the parts of security that use no socket and no metadata store.

| module | what |
|---|---|
| `principal` | the name of a client, once it is known |
| `authentication` | how a client proves who it is, by SASL |
| `tls` | certificates, contexts of OpenSSL, names of clients with certificates |
| `access` | resources, operations and rules; the authorizer that decides by them |
"""
