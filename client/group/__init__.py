"""Consumer groups, as seen by a member.

| module | what is there |
|---|---|
| `embedded` | what members of a classic group tell each other through the broker |
"""
