"""The validation of OAUTHBEARER's tokens.

| module | what |
|---|---|
| `validator` | the interface of validators, a valid token, and how an invalid one is reported |
| `signed_tokens` | tokens with a signature: `BrokerJwtValidator` in Kafka |
| `unsecured_tokens` | tokens without one, for tests: `OAuthBearerUnsecuredValidatorCallbackHandler` in Kafka |
| `token_parts` | the three parts of a token; the types of claims |
| `key_cache` | the issuer's public keys, fetched again and again |
| `key_set` | the text of a key set (JWKS), and the keys that are used of it |
| `key_source` | reading that text from a URL: https with a time limit, or a file |
"""
