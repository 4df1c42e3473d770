"""The security of connections: settings of TLS and SASL, key and trust stores, tokens. Nothing here uses a connection.

| module | what |
|---|---|
| `settings` | `SecuritySettings`, which clients and brokers pass to `network` |
| `properties` | the same as properties of Kafka's clients |
| `setting_checks` | which of those settings need or exclude each other |
| `jaas` | the parser of `sasl_jaas_config` |
| `credentials` | the credentials of a SASL mechanism, from the settings that have them |
| `pem` | PEM text as files and properties hold it |
| `stores` | key stores and trust stores: PEM and PKCS12 files, and inline PEM |
| `certificate` | the parts of a certificate that messages show |
| `tokens` | tokens of OAUTHBEARER: from a function, kept until they are old |
| `client_credentials` | tokens that a token endpoint issues to a client id and its secret |
"""
