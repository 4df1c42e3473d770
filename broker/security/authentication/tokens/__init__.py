"""The validation of OAUTHBEARER's tokens.

| module | what |
|---|---|
| `validator` | the interface of validators, a valid token, and how an invalid one is reported |
"""
