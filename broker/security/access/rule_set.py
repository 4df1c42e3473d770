"""The index of access rules by which decisions are made.

```
resource type ─┬─ literal    name   ─► (principal, host) ─► mask
               ├─ prefixed   prefix ─► (principal, host) ─► mask
               ├─ lengths of the prefixes, each with the number of prefixes that have it
               └─ patterns of each principal
mask: bit n: operation n is allowed; bit 16 + n: operation n is denied
```

A decision looks up the name, `*`, and the name's beginning in each length that a prefix has: its cost grows with the
length of the name, not with the number of rules. A million rules take about 350 MB.

Callers add only rules that `check_rule` accepts. Adding a rule that is there, and removing one that is not, changes
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from odradek.broker.security.access.rule import AccessRule
from odradek.protocol.access_rules import (
    EVERY_RESOURCE,
    Operation,
    PatternType,
    PermissionType,
    ResourceType,
)

Who = tuple[str, str]
"""A principal and a host, as in a rule."""
Entries = dict[Who, int]
"""The masks of one pattern."""

_DENIED = 16
"""The bits of denied operations begin here."""

_ALSO_ALLOWED_BY = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}


class _Bits:
    """The bits of a mask that allow and that deny one operation."""

    __slots__ = ("allow", "deny")

    def __init__(self, operation: Operation) -> None:
        named = 1 << operation | 1 << Operation.ALL
        self.deny = named << _DENIED
        self.allow = named
        for other in _ALSO_ALLOWED_BY.get(operation, ()):
            self.allow |= 1 << other


_BITS = {operation: _Bits(operation) for operation in Operation}


class Verdict:
    """The rules that concern one request: whether the resource has any, and one that denies or allows, if there is one.

    A rule that denies takes precedence. Of several, it is one of the literal rules, then of `*`, then of the longest
    prefix.
    """

    __slots__ = ("has_rules", "rule")

    def __init__(self, has_rules: bool, rule: AccessRule | None) -> None:
        self.has_rules = has_rules
        self.rule = rule


class RuleSet:
    """All access rules, indexed for decisions."""

    def __init__(self) -> None:
        self._types = {resource_type: _RulesOfType(resource_type) for resource_type in ResourceType}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, rule: AccessRule) -> None:
        self._count += self._types[rule.resource_type].add(rule)

    def remove(self, rule: AccessRule) -> None:
        self._count -= self._types[rule.resource_type].remove(rule)

    def find(
        self, principals: tuple[str, ...], hosts: tuple[str, ...], operation: Operation, kind: ResourceType, name: str
    ) -> Verdict:
        """Return the verdict for a resource; a rule matches with any of the principals and hosts."""
        return self._types[kind].find([(who, host) for who in principals for host in hosts], _BITS[operation], name)

    def allows_on_any(
        self, principals: tuple[str, ...], hosts: tuple[str, ...], operation: Operation, kind: ResourceType
    ) -> bool:
        """Return whether a rule allows the operation on a resource on which no rule denies it."""
        return self._types[kind].allows_on_any(principals, hosts, _BITS[operation])

    def has_rules_for_every(self, kind: ResourceType) -> bool:
        """Return whether a rule is for every resource of the type: then none is without rules."""
        return self._types[kind].has_rules_for_every()


class _RulesOfType:
    """The rules for one type of resource."""

    def __init__(self, resource_type: ResourceType) -> None:
        self._resource_type = resource_type
        self._literal: dict[str, Entries] = {}
        self._prefixed: dict[str, Entries] = {}
        self._lengths: dict[int, int] = {}
        self._longest_first: list[int] = []
        self._patterns_of: dict[str, dict[tuple[PatternType, str], int]] = {}  # with the number of hosts

    def _of(self, pattern_type: PatternType) -> dict[str, Entries]:
        return self._prefixed if pattern_type is PatternType.PREFIXED else self._literal

    def add(self, rule: AccessRule) -> bool:
        """Add a rule; return False if it is there already."""
        patterns = self._of(rule.pattern_type)
        entries = patterns.get(rule.name)
        if entries is None:
            entries = patterns[rule.name] = {}
            if rule.pattern_type is PatternType.PREFIXED:
                self._count_length(len(rule.name), 1)
        who = rule.principal, rule.host
        before = entries.get(who, 0)
        after = before | _bit(rule)
        entries[who] = after
        if not before:
            patterns_of = self._patterns_of.setdefault(rule.principal, {})
            pattern = rule.pattern_type, rule.name
            patterns_of[pattern] = patterns_of.get(pattern, 0) + 1
        return before != after

    def remove(self, rule: AccessRule) -> bool:
        """Remove a rule; return False if it is not there."""
        patterns = self._of(rule.pattern_type)
        entries = patterns.get(rule.name, {})
        who = rule.principal, rule.host
        before = entries.get(who, 0)
        after = before & ~_bit(rule)
        if before == after:
            return False
        if after:
            entries[who] = after
            return True
        del entries[who]
        self._forget_pattern_of(rule)
        if not entries:
            del patterns[rule.name]
            if rule.pattern_type is PatternType.PREFIXED:
                self._count_length(len(rule.name), -1)
        return True

    def _forget_pattern_of(self, rule: AccessRule) -> None:
        patterns_of, pattern = self._patterns_of[rule.principal], (rule.pattern_type, rule.name)
        patterns_of[pattern] -= 1
        if not patterns_of[pattern]:
            del patterns_of[pattern]
        if not patterns_of:
            del self._patterns_of[rule.principal]

    def _count_length(self, length: int, change: int) -> None:
        before = self._lengths.get(length, 0)
        self._lengths[length] = before + change
        if not self._lengths[length]:
            del self._lengths[length]
        if not before or length not in self._lengths:
            self._longest_first = sorted(self._lengths, reverse=True)

    def _patterns_for(self, name: str) -> Iterator[tuple[PatternType, str, Entries]]:
        """Yield the patterns with rules that the name matches."""
        literal = self._literal
        for each in (name, EVERY_RESOURCE):
            entries = literal.get(each)
            if entries is not None:
                yield PatternType.LITERAL, each, entries
        yield from self._prefixes_of(name)

    def _prefixes_of(self, name: str) -> Iterator[tuple[PatternType, str, Entries]]:
        prefixed, longest = self._prefixed, len(name)
        for length in self._longest_first:
            if length <= longest:
                prefix = name[:length]
                entries = prefixed.get(prefix)
                if entries is not None:
                    yield PatternType.PREFIXED, prefix, entries

    def find(self, whos: list[Who], bits: _Bits, name: str) -> Verdict:
        has_rules = False
        allowing: AccessRule | None = None
        for pattern_type, pattern, entries in self._patterns_for(name):
            has_rules = True
            for who in whos:
                mask = entries.get(who, 0)
                if mask & bits.deny:
                    return Verdict(True, self._rule(pattern_type, pattern, who, mask & bits.deny))
                if allowing is None and mask & bits.allow:
                    allowing = self._rule(pattern_type, pattern, who, mask & bits.allow)
        return Verdict(has_rules, allowing)

    def _rule(self, pattern_type: PatternType, name: str, who: Who, mask: int) -> AccessRule:
        """Return the rule of the highest bit of a mask."""
        bit = mask.bit_length() - 1
        permission = PermissionType.DENY if bit >= _DENIED else PermissionType.ALLOW
        return AccessRule(self._resource_type, pattern_type, name, *who, Operation(bit % _DENIED), permission)

    def allows_on_any(self, principals: tuple[str, ...], hosts: tuple[str, ...], bits: _Bits) -> bool:
        """As `AuthorizerUtils.authorizeByResourceType`.

        A denial for `*` denies all. A pattern that is allowed counts unless it is denied literally, or a prefix of it
        is.
        """
        whos = [(who, host) for who in principals for host in hosts]
        every = self._literal.get(EVERY_RESOURCE)
        if every is not None and _any(every, whos, bits.deny):
            return False
        for principal in principals:
            for pattern_type, name in self._patterns_of.get(principal, ()):
                entries = self._of(pattern_type)[name]
                if not _any(entries, whos, bits.allow):
                    continue
                if pattern_type is PatternType.LITERAL and _any(entries, whos, bits.deny):
                    continue
                is_every = pattern_type is PatternType.LITERAL and name == EVERY_RESOURCE
                if is_every or not any(_any(each, whos, bits.deny) for _, _, each in self._prefixes_of(name)):
                    return True
        return False

    def has_rules_for_every(self) -> bool:
        return EVERY_RESOURCE in self._literal


def _bit(rule: AccessRule) -> int:
    return 1 << rule.operation << (_DENIED if rule.permission is PermissionType.DENY else 0)


def _any(entries: Entries, whos: list[Who], bits: int) -> bool:
    return any(entries.get(who, 0) & bits for who in whos)
