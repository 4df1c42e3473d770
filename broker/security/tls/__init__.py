"""TLS of a listener, without sockets and without configuration: certificates, contexts of OpenSSL, names of clients.

| module | what |
|---|---|
| `settings` | the `ssl.*` properties of one listener, and the error that names one of them |
| `pem`, `stores` | reading PEM; reading keys, certificates and trusted authorities from PEM and PKCS12 |
| `cipher_suites` | Java's names of cipher suites, and OpenSSL's |
| `context` | the context of OpenSSL that new connections use |
| `web_context` | the context for a server of the web, whose authority the machine trusts |
| `listener_tls` | the present context of a listener, who its clients are, new certificates |
| `distinguished_name` | the subject of a certificate, as Java writes it |
| `mapping_rules` | from that name to a principal's: `ssl.principal.mapping.rules` |
"""
