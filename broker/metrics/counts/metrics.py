"""The counters of a broker: plain integers on small objects, one for each topic, API, listener and fetcher.

Hot paths keep the object and add to its attributes. Names, labels, rates and quantiles are computed at a scrape
(`jmx_collector`). Every object belongs to one broker: two brokers in one interpreter share nothing. Only the event loop
writes, except where an attribute says otherwise.

Values that need no counter (log sizes, partition counts, the purgatory's size) are in `gauge_values`.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from operator import sub
from typing import Final

from odradek.broker.metrics.counts.histogram import DurationHistogram
from odradek.broker.metrics.counts.metadata_store import MetadataStoreCounts
from odradek.broker.metrics.counts.transactions import TransactionCounts

# The number of requests whose times are sorted into buckets together. A time is an object: those of 2,048 requests take
# 400 KB, too much for the processor's caches. Sorting 256 costs the same for each request.
_FOLD_AT: Final = 256
_RATE_WINDOW_SECONDS: Final = 30.0  # Kafka's metrics.sample.window.ms
_LOAD_WINDOW_SECONDS: Final = 60.0  # Kafka reports the one-minute rate


TOPIC_COUNTS: Final = (
    "bytes_in",
    "bytes_out",
    "bytes_rejected",
    "failed_fetch_requests",
    "failed_produce_requests",
    "fetch_requests",
    "messages_in",
    "produce_message_conversions",
    "produce_requests",
)
"""The attributes of a TopicMetrics; the compiled class has no `__slots__`."""


class TopicMetrics:
    """Kafka's BrokerTopicMetrics of one topic."""

    __slots__ = TOPIC_COUNTS

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.bytes_rejected = 0
        self.produce_requests = 0
        self.fetch_requests = 0
        self.failed_produce_requests = 0
        self.failed_fetch_requests = 0
        self.produce_message_conversions = 0

    def add(self, other: TopicMetrics) -> None:
        """Add all counts of `other`."""
        for name in TOPIC_COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class ApiMetrics:
    """Kafka's RequestMetrics of one kind of request. Durations are in seconds.

    ```
    received ─ queue ─► started ─ local ─► handled ─ remote ─► ready ─ send ─► sent        total: from first to last
                                           (the handler returned)              (the kernel has the whole response)
    ```

    There is no response queue: a response is sent when it is ready. `record` stores the times, `fold` moves them into
    the histograms.
    """

    __slots__ = ("_times", "errors", "local", "name", "queue", "remote", "send", "total", "versions")

    def __init__(self, name: str) -> None:
        self.name = name
        self.versions: defaultdict[int, int] = defaultdict(int)  # a Counter needs 0.06 µs more for each
        self.errors: defaultdict[int, int] = defaultdict(int)  # by error code, NONE too
        self.queue = DurationHistogram()
        self.local = DurationHistogram()
        self.remote = DurationHistogram()
        self.send = DurationHistogram()
        self.total = DurationHistogram()
        self._times: list[tuple[float, float, float, float, float]] = []

    def record(self, received: float, started: float, handled: float, ready: float, sent: float) -> None:
        """Record the times of an answered request (monotonic, in seconds)."""
        # 0.2 µs, and as much again in `fold`; one call for each of five histograms took 0.8 µs of a small Produce.
        self._times.append((received, started, handled, ready, sent))
        if len(self._times) >= _FOLD_AT:
            self.fold()

    @property
    def requests(self) -> int:
        return sum(self.versions.values())

    def add(self, other: ApiMetrics) -> None:
        """Add the requests of `other`."""
        other.fold()
        for version, count in other.versions.items():
            self.versions[version] += count
        for code, count in other.errors.items():
            self.errors[code] += count
        for name in ("queue", "local", "remote", "send", "total"):
            getattr(self, name).add(getattr(other, name))

    def fold(self) -> None:
        """Move the recorded times into the histograms."""
        if not self._times:
            return
        received, started, handled, ready, sent = zip(*self._times, strict=True)
        self._times.clear()
        self.local.record_all(map(sub, handled, started))
        self.send.record_all(map(sub, sent, ready))
        self.total.record_all(map(sub, sent, received))
        # All equal is the common case: requests that come one by one, and are answered by the handler itself.
        for histogram, began, ended in ((self.queue, received, started), (self.remote, handled, ready)):
            if began == ended:
                histogram.record_none(len(began))
            else:
                histogram.record_all(map(sub, ended, began))

    def fade(self, seconds: float) -> None:
        self.fold()
        for histogram in (self.queue, self.local, self.remote, self.send, self.total):
            histogram.fade(seconds)


class FlushMetrics:
    """Kafka's LogFlushStats: the time of each segment's sync, in seconds.

    The threads that sync call `record`; everything else runs on the event loop, which moves the recorded times into the
    histogram every few seconds and before each scrape.
    """

    __slots__ = ("_recorded", "_times")

    def __init__(self) -> None:
        self._recorded: deque[float] = deque()
        self._times = DurationHistogram()

    def record(self, seconds: float) -> None:
        """Record the sync of a segment. May be called on any thread."""
        self._recorded.append(seconds)

    def times(self) -> DurationHistogram:
        """Return the histogram with everything recorded so far."""
        self._times.record_all([self._recorded.popleft() for _ in range(len(self._recorded))])
        return self._times

    def fade(self, seconds: float) -> None:
        self.times().fade(seconds)


class ListenerMetrics:
    """The connections of one listener. `idle` and `refused` ones are among those `created` and `closed`.

    `certificate_expiry` is when its TLS certificate expires, in seconds since the epoch; None without TLS.
    """

    __slots__ = (
        "_samples",
        "authentications",
        "certificate_expiry",
        "closed",
        "created",
        "expired_sessions",
        "failed_authentications",
        "failed_reauthentications",
        "idle",
        "name",
        "reauthentications",
        "refused",
        "software",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.created = 0
        self.closed = 0
        self.idle = 0  # for too long
        self.refused = 0  # over a limit
        self.authentications = 0  # the first of each connection
        self.failed_authentications = 0
        self.reauthentications = 0
        self.failed_reauthentications = 0
        self.expired_sessions = 0  # closed, because the client has not authenticated again in time
        self.certificate_expiry: float | None = None
        self.software: Counter[tuple[str, str]] = Counter()  # open connections by the client's name and version
        self._samples: deque[tuple[float, int, int]] = deque()

    @property
    def open(self) -> int:
        return self.created - self.closed

    def software_opened(self, name: str, version: str) -> None:
        """Count a connection whose client has named its software (KIP-511)."""
        self.software[name, version] += 1

    def software_closed(self, name: str, version: str) -> None:
        self.software[name, version] -= 1
        if not self.software[name, version]:
            del self.software[name, version]

    def sample(self, now: float) -> None:
        """Store the counts of this moment, for `rates`. To be called every few seconds."""
        while len(self._samples) > 1 and self._samples[1][0] <= now - _RATE_WINDOW_SECONDS:
            self._samples.popleft()
        self._samples.append((now, self.created, self.closed))

    def rates(self, now: float) -> tuple[float, float]:
        """Return the connections created and closed a second, over about the last half minute; 0 before `sample`."""
        if not self._samples:
            return 0.0, 0.0
        since, created, closed = self._samples[0]
        elapsed = max(now - since, 1.0)
        return (self.created - created) / elapsed, (self.closed - closed) / elapsed


class FetcherMetrics:
    """The requests of one loop that fetches from a leader."""

    __slots__ = ("_samples", "requests")

    def __init__(self) -> None:
        self.requests = 0
        self._samples: deque[tuple[float, int]] = deque()

    def sample(self, now: float) -> None:
        """Store the count of this moment, for `rate`. To be called every few seconds."""
        while len(self._samples) > 1 and self._samples[1][0] <= now - _RATE_WINDOW_SECONDS:
            self._samples.popleft()
        self._samples.append((now, self.requests))

    def rate(self, now: float) -> float:
        """Return the requests a second, over about the last half minute; 0 before `sample`."""
        if not self._samples:
            return 0.0
        since, requests = self._samples[0]
        return (self.requests - requests) / max(now - since, 1.0)


class Metrics:
    """The counts of one broker."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicMetrics] = {}
        self.deleted_topics = TopicMetrics()
        self.apis: dict[str, ApiMetrics] = {}
        self.listeners: dict[str, ListenerMetrics] = {}
        self.authorizations = [0, 0]  # decisions of the authorizer: refusals, and what is allowed
        self.unexpected_errors = 0  # exceptions that became UNKNOWN_SERVER_ERROR
        self.invalid_crc_records = 0
        self.invalid_magic_records = 0
        self.invalid_offset_or_sequence_records = 0
        self.no_key_compacted_topic_records = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0
        self.isr_expands = 0
        self.isr_shrinks = 0
        self.failed_isr_updates = 0  # refused by the metadata store, or without an answer
        self.fetchers: dict[tuple[int, int], FetcherMetrics] = {}  # by leader, and number of the loop
        self.unclean_leader_elections = 0
        self.log_flush = FlushMetrics()
        self.metadata_store = MetadataStoreCounts()
        self.transactions = TransactionCounts()
        self.requests_in_flight = 0  # begun by their handlers and not answered yet
        self.loop_idle = 1.0  # share of about the last minute in which the event loop's thread used no CPU

    def topic(self, name: str) -> TopicMetrics:
        """Return the metrics of a topic; the first call creates them."""
        found = self.topics.get(name)
        if found is None:
            found = self.topics[name] = TopicMetrics()
        return found

    def remove_topic(self, name: str) -> None:
        """Remove the series of a deleted topic. The sums over all topics keep its counts: a counter must never fall."""
        removed = self.topics.pop(name, None)
        if removed is not None:
            self.deleted_topics.add(removed)

    def api(self, name: str) -> ApiMetrics:
        """Return the metrics of an API, by its name in Kafka; the first call creates them."""
        found = self.apis.get(name)
        if found is None:
            found = self.apis[name] = ApiMetrics(name)
        return found

    def listener(self, name: str) -> ListenerMetrics:
        found = self.listeners.get(name)
        if found is None:
            found = self.listeners[name] = ListenerMetrics(name)
        return found

    def fetcher(self, leader: int, number: int) -> FetcherMetrics:
        """Return the metrics of a loop that fetches from a leader, from its start until `remove_fetcher`."""
        found = self.fetchers.get((leader, number))
        if found is None:
            found = self.fetchers[leader, number] = FetcherMetrics()
        return found

    def remove_fetcher(self, leader: int, number: int) -> None:
        self.fetchers.pop((leader, number), None)

    def all_topics(self) -> TopicMetrics:
        """Return the sums over all topics, deleted ones included."""
        total = TopicMetrics()
        total.add(self.deleted_topics)
        for topic in self.topics.values():
            total.add(topic)
        return total

    def observe_loop(self, busy: float, elapsed: float) -> None:
        """Update `loop_idle`: the event loop's thread used `busy` seconds of CPU in the last `elapsed` seconds."""
        idle = min(1.0, max(0.0, 1.0 - busy / elapsed))
        weight = min(1.0, elapsed / _LOAD_WINDOW_SECONDS)
        self.loop_idle += weight * (idle - self.loop_idle)

    def tick(self, now: float, elapsed: float) -> None:
        """Decay old durations and sample for rates: every few seconds, `elapsed` seconds after the last call."""
        for api in self.apis.values():
            api.fade(elapsed)
        self.log_flush.fade(elapsed)
        self.metadata_store.answered.fade(elapsed)
        self.transactions.tick(now, elapsed)
        for listener in self.listeners.values():
            listener.sample(now)
        for fetcher in self.fetchers.values():
            fetcher.sample(now)
