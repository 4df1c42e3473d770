"""Random sequences of group requests: members of both protocols, static ones, conversions, topics that come and go.

The slots 0 to 3 are clients; slots 2 and 3 have an instance id. A client usually does what a real one does next, with
the protocol that it prefers, but sometimes anything else. The groups use the range assignor, whose result depends only
on the order of member and instance ids: the ids that a server assigns begin with the client id, which is the number of
the act.
"""

from __future__ import annotations

import random
from typing import Any

from tests.interop.differential.random_group_requests import KINDS, TOPICS
from tests.interop.differential.random_playing import Act

__all__ = ["KINDS", "is_fixed", "sequence"]

SLOTS = 4


def _instance(slot: int) -> str | None:
    return f"i{slot}" if slot >= 2 else None


class _Source:
    """Makes the acts of one sequence."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.acts: list[Act] = []
        # Some groups stay with one protocol, some are mixed.
        self._consumers = self._random.choice([0.0, 0.0, 0.5, 0.5, 1.0])
        self._uses_consumer = [self._random.random() < self._consumers for _ in range(SLOTS)]

    def put(self, kind: str, slot: int = 0, **fields: Any) -> None:
        self.acts.append(Act(len(self.acts), kind, slot, fields))

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def topics(self) -> list[str]:
        return self._random.choice([["t"], ["t"], ["u"], ["t", "u"], ["t", "x"], []])

    def member_fields(self, slot: int, odd: float = 0.07) -> dict[str, Any]:
        """The instance id and usually nothing else: sometimes another member, epoch or instance."""
        fields: dict[str, Any] = {"instance": _instance(slot)}
        if self.chance(odd):
            fields["member"] = self._random.choice(["", "stranger", (slot + 1) % SLOTS])
        if self.chance(odd):
            fields["epoch_by"] = self._random.choice([-1, 1])
        if self.chance(odd):
            fields["instance"] = self._random.choice([None, "i2", "i3", "i9"])
        return fields

    def join(self, slot: int, **fields: Any) -> None:
        chosen = {
            **self.member_fields(slot, 0.04),
            "version": self._random.choice([3, 5, 5, 7, 9, 9]),
            "protocols": self._random.choice([["range"], ["range"], ["range", "roundrobin"], ["roundrobin", "range"]]),
            "topics": self.topics(),
            "format": self._random.choice([0, 1, 3]),
            "owns": self.chance(0.3),
        }
        if self.chance(0.04):
            chosen["protocols"] = self._random.choice([["sticky"], []])
        if self.chance(0.03):
            chosen["type"] = self._random.choice(["connect", ""])
        if self.chance(0.3):
            chosen["member"] = ""
        self.put("join", slot, **{**chosen, **fields})

    def sync(self, slot: int) -> None:
        fields = {**self.member_fields(slot, 0.04), "version": self._random.choice([2, 3, 5])}
        if self.chance(0.5):
            fields["type"] = self._random.choice(["consumer", "consumer", "connect"])
        if self.chance(0.3):
            fields["protocol"] = self._random.choice(["range", "range", "roundrobin"])
        self.put("sync", slot, **fields)

    def rebalance(self) -> None:
        """All classic clients join, most with the id that they have, then all sync."""
        slots = [slot for slot in range(SLOTS) if self.chance(0.7)]
        for slot in slots:
            self.join(slot, version=5, topics=["t"], protocols=["range"])
        for slot in slots:
            self.join(slot, version=9, topics=["t"], protocols=["range"], member=slot, instance=_instance(slot))
        for slot in slots:
            self.put("sync", slot, version=3, instance=_instance(slot))

    def consumer(self, slot: int) -> None:
        fields = self.member_fields(slot, 0.04)
        what = self._random.choices(["stay", "join", "change", "regex", "leave", "odd"], [8, 5, 2, 1, 2, 1])[0]
        owned = self._random.choice(["assigned", "assigned", "nothing", None])
        joining = {"member": f"c{slot}", "epoch": 0, "joins": True, "owned": "nothing"}
        match what:
            case "stay":
                fields |= {"owned": owned}
            case "join":
                fields = {**joining, "topics": self.topics() or ["t"], **fields, "member": f"c{slot}"}
            case "change":
                fields |= {"topics": self.topics(), "owned": owned}
            case "regex":
                pattern = self._random.choice(["PREFIX-[tu]", "PREFIX-u", "", "(", "nothing"])
                fields = {**joining, **fields, "member": f"c{slot}", "regex": pattern}
                fields["topics"] = self._random.choice([None, None, ["t"]])
            case "leave":
                fields |= {"epoch": self._random.choice([-1, -2])}
            case "odd":
                fields |= self._random.choice(
                    [{"assignor": "uniform"}, {"assignor": "range"}, {"rack": "r"}, {"rack": ""}, {"epoch": -3},
                     {"owned": "another"}, {"joins": True, "epoch": 0}, {"instance": ""}]
                )  # fmt: skip
        self.put("consumer", slot, **fields)

    def any_act(self) -> None:
        slot = self._random.randrange(SLOTS)
        uses_consumer = self._uses_consumer[slot] is not self.chance(0.05)
        what = self._random.choices(["member", "offsets", "admin", "topic"], [12, 4, 3, 1])[0]
        if what == "member" and uses_consumer:
            self.consumer(slot)
        elif what == "member":
            self._classic(slot)
        elif what == "offsets":
            self._offsets(slot)
        elif what == "admin":
            kinds = ["describe", "describe consumer", "list", "delete group", "leave"]
            kind = self._random.choices(kinds, [4, 4, 2, 1, 2])[0]
            if kind == "leave":
                members = [
                    (self._random.choice([other, "", "stranger"]), self._random.choice([None, _instance(other)]))
                    for other in self._random.sample(range(SLOTS), self._random.randint(0, 3))
                ]
                self.put("leave", version=self._random.choice([4, 5]), members=members)
            else:
                self.put(kind)
        else:
            self._topic()

    def _classic(self, slot: int) -> None:
        what = self._random.choices(["join", "sync", "heartbeat", "leave", "rebalance"], [5, 5, 4, 1, 2])[0]
        match what:
            case "join":
                self.join(slot)
            case "sync":
                self.sync(slot)
            case "heartbeat":
                self.put("heartbeat", slot, **self.member_fields(slot))
            case "leave":
                self.put("leave", slot, version=self._random.choice([1, 5]), members=[(slot, _instance(slot))])
            case "rebalance":
                self.rebalance()

    def _offsets(self, slot: int) -> None:
        topics = self._random.choice([["t"], ["t", "u"], ["x"], ["missing", "t"]])
        what = self._random.choices(["commit", "fetch", "delete offsets"], [5, 3, 1])[0]
        match what:
            case "commit":
                fields = {**self.member_fields(slot), "version": self._random.choice([2, 6, 8, 9, 9, 10, 10])}
                if self.chance(0.2):
                    fields |= {"member": "", "epoch": -1, "instance": None}
                partitions = self._random.choice([[0], [0, 1], [0, 7]])
                self.put("commit", slot, **fields, topics=topics, partitions=partitions)
            case "fetch":
                wanted = self._random.choice([None, topics])
                fields = {**self.member_fields(slot), "version": self._random.choice([2, 7, 8, 9, 9, 10])}
                self.put("fetch", slot, **fields, topics=wanted, as_member=self.chance(0.5))
            case "delete offsets":
                self.put("delete offsets", topics=topics)

    def _topic(self) -> None:
        what = self._random.choice(["create", "create", "grow", "delete"])
        match what:
            case "create":
                self.put("create", topics=["x"], partitions=2)
            case "grow":
                self.put("grow", topics=[self._random.choice(["t", "x"])], partitions=self._random.choice([3, 4, 5]))
            case "delete":
                self.put("delete", topics=["x"])


def sequence(seed: int, length: int) -> list[Act]:
    """Return `length` or some more acts. The first creates the topics."""
    source = _Source(seed)
    source.put("create", topics=TOPICS, partitions=3)
    while len(source.acts) < length:
        source.any_act()
    for kind in ("fetch", "describe", "describe consumer", "list"):
        source.put(kind, **({"version": 8, "topics": None} if kind == "fetch" else {}))
    return source.acts


def is_fixed(act: Act) -> bool:
    """Return whether a sequence cannot do without this act."""
    return act.number == 0
