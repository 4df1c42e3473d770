"""How many random cases a test tries: a fifth of them in `make test-fast`."""

from __future__ import annotations

from hypothesis import settings

_ONE_OF = 5 if settings.get_current_profile_name() == "fast" else 1


def cases(number: int) -> int:
    """Return how many of `number` cases this run tries; at least two, because the first of hypothesis is trivial."""
    return max(number // _ONE_OF, 2)


def examples(number: int) -> settings:
    """Decorate a test of hypothesis with the number of its examples."""
    return settings(max_examples=cases(number))
