"""One client's connection: requests in, responses out in their order, one request executing at a time.

```
            ┌────────────── readable ──────────────┐
 kernel ──► FrameReader ──► Dispatcher ──► Answers ──► Outbox ──► kernel
            │ waits while a request is parked,   │  │     │ unsent > limit: nothing more is executed or read
            │ or the turn's budget is spent      │  └ held until the other readable connections had their turn
            │                                    └ Pending: parked, at most one
            └ enough is waiting, or all hold too much (`Connections.may_receive`): reading stops
```

`connection_state` has the states of a connection.

If a peer closes its side, the requests that it sent before are executed (a producer with acks=0 may send and
disconnect), as in Kafka; a request that waits for other clients is cancelled. A protocol error of the peer closes its
connection with one log line, after the kernel has taken the responses to earlier requests, including a parked one.
However a connection ends, its parked request, its file slices and its descriptor are released.

A client whose quota is over is muted after its answer, for the throttle time: nothing more of it is read or executed
(KIP-219). A muted connection may become idle; stopping the broker ends the pause.

Fairness: a turn receives up to 1 MiB and executes up to 32 requests, then other connections have theirs. It ends sooner
after `SLICE_SECONDS`; the rest then waits in the queue of all long work, so that many such connections take no more.

With many open connections, small answers are held for a moment (`Connections.hold`) and sent together: each send wakes
a client, which takes the processor and its caches from the broker.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.broker.request.context import ConnectionContext
from odradek.broker.request.time_slices import SLICE_SECONDS
from odradek.broker.server.connection_state import Sending, State
from odradek.broker.server.failures import log_failure
from odradek.broker.server.flow_control import Outbox
from odradek.broker.server.routes import Answers, Pending
from odradek.broker.server.sasl_gate import gated
from odradek.broker.server.transport import BlockedBySendingError, Transport
from odradek.broker.structured_logging import StructuredLogger
from odradek.broker.waiting import Timer
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.framing import FrameReader

if TYPE_CHECKING:
    from odradek.broker.server.connections import Connections

_LOG: Final = StructuredLogger(__name__)

TURN_BYTES: Final = 1024 * 1024
TURN_REQUESTS: Final = 32
LARGE_RECEIVE: Final = 64 * 1024
"""Received bytes that take so long to execute that answers of other connections are sent before."""
UNSENT_LIMIT: Final = 256 * 1024
"""Response bytes that a peer may leave unread before its next request must wait."""
_PROGRESS_BYTES: Final = 1024  # fewer bytes without a whole request do not count as activity


class Connection:
    """See the module. Used on the event loop only; `active_at` is its last progress, `answered_at` its last answer."""

    __slots__ = (
        "_connections",
        "_dispatcher",
        "_fd",
        "_held",
        "_loop",
        "_memory",
        "_monotonic",
        "_mute",
        "_outbox",
        "_peer_error",
        "_pending",
        "_reader",
        "_reading",
        "_receives_again",
        "_scheduled",
        "_sending",
        "_state",
        "_transport",
        "active_at",
        "answered_at",
        "context",
    )

    def __init__(self, connections: Connections, transport: Transport, context: ConnectionContext) -> None:
        self.context = context
        self._connections = connections
        self._dispatcher = gated(connections.dispatcher, context)
        self._loop = connections.loop
        self._monotonic = connections.clock.monotonic
        self._transport = transport
        self._fd = transport.fileno()
        self._memory = connections.arena.memory
        self._reader = FrameReader(
            connections.arena, connections.config.socket_request_max_bytes, self._dispatcher.check_size
        )
        self._outbox = Outbox(transport, self._loop, connections.run_in_thread, self._sent, self._failed)
        self._pending: Pending | None = None
        self._mute: Timer | None = None  # the end of a pause
        self._held: Answers | None = None  # sent by `send_held`
        self._peer_error: RemoteProtocolError | None = None  # found behind a parked request
        self._sending: list[Sending] = []
        self._state = State.OPEN
        self._reading = False
        self._receives_again = False  # a turn for the bytes that the transport holds is scheduled
        self._scheduled = False  # the next turn is scheduled, because the budget of the last one was spent
        self.active_at = self.answered_at = self._monotonic()

    def start(self) -> None:
        self._read(on=True)

    def fileno(self) -> int:
        return self._fd

    @property
    def is_reading(self) -> bool:
        """Return whether bytes are read from the client at present."""
        return self._reading

    @property
    def buffered(self) -> int:
        """Bytes that were received and not executed yet."""
        return self._reader.buffered

    @property
    def unsent(self) -> int:
        """Bytes of responses that the kernel has not taken yet."""
        return self._outbox.unsent

    @property
    def is_busy(self) -> bool:
        """Return whether a request is being executed or waits for execution."""
        return self._pending is not None or self._scheduled

    @property
    def is_receiving_large_request(self) -> bool:
        """Return whether a large request has been received in part. Raises RemoteProtocolError for an invalid size."""
        return self._reader.is_within_large_frame

    def resume_receiving(self) -> None:
        """Read again after `Connections.may_receive` returned False: memory has been freed."""
        if self._state is State.OPEN:
            self._continue_or_wait()

    def finish(self) -> None:
        """Stop reading; execute and answer the requests that were received completely, then close."""
        if self._state is State.OPEN:
            self._state = State.FINISHING
            self._read(on=False)
            self._unmute()

    def close(self, reason: str, *, resets: bool = False) -> None:
        """Close now, in any state; with `resets` so that the client sees a reset."""
        if self._state is State.CLOSED:
            return
        self._state = State.CLOSED
        self.context.is_disconnected = True
        if self._mute is not None:
            self._mute.cancel()
        self._read(on=False)
        self._held = None
        self._reader.discard()
        self._outbox.close()
        if resets:
            self._transport.reset()
        else:
            self._connections.closing.close(self._transport, self.answered_at)
        pending, self._pending = self._pending, None
        if pending is not None:
            self._connections.abandon(pending)
        self._connections.remove(self)
        _LOG.debug("connection closed", peer=self.context.peer_address, reason=reason)

    def _readable(self) -> None:
        reader = self._reader
        budget = TURN_BYTES
        ends_at = self._monotonic() + SLICE_SECONDS
        try:
            while self._reading and budget > 0 and not self._receives_again:  # a turn for each round of the event loop
                if self._memory.is_full and not self._connections.may_receive(self):
                    self._read(on=False)
                    return
                room = reader.buffer()
                count = self._transport.recv_into(room)
                if not count:
                    self._peer_closed()
                    return
                reader.received(count)
                if count >= LARGE_RECEIVE:
                    self._connections.send_held()
                self._execute(count)
                budget -= count
                # uvloop reports bytes and a reset behind them once only: after a part of a request, look for a reset.
                if count < len(room) and not reader.buffered and not self._transport.has_pending():
                    return
                if self._monotonic() >= ends_at:
                    break
            self._receive_pending()
        except BlockedBySendingError:
            reader.settle()
            self._read(on=False)
            self._outbox.wait_for_room()
        except BlockingIOError:
            reader.settle()
            self._receive_pending()
        except Exception as error:  # noqa: BLE001 - any error ends this connection and no other
            self._failed(error)

    def _receive_pending(self) -> None:
        """Receive what the transport holds, in the next turn: the descriptor does not become readable for it."""
        if self._reading and not self._receives_again and self._transport.has_pending():
            self._receives_again = True
            self._loop.call_soon(self._receive_again)

    def _receive_again(self) -> None:
        self._receives_again = False
        self._readable()

    def _peer_closed(self) -> None:
        self._state = State.FINISHING
        self._read(on=False)
        if self._pending is not None:
            self.context.is_disconnected = True
            if self._pending.route.waits_for_others:
                self.close("the client has disconnected")
                return
        self._turn()

    def _turn(self) -> None:
        """Execute requests that were received before."""
        self._scheduled = False
        if self._state is State.CLOSED:
            return
        try:
            self._execute(0)
        except Exception as error:  # noqa: BLE001 - as above
            self._failed(error)

    def _execute(self, received: int, answered: Pending | None = None) -> None:
        """Answer `answered`, execute whole requests until one is parked or the budget is spent, send the responses.

        Raises RemoteProtocolError or CloseConnection, after earlier responses were sent, and OSError.
        """
        if self._held is not None:
            self.send_held()
            if self._state is State.CLOSED:
                return
        answers = Answers(self._monotonic())
        try:
            if answered is not None:
                more = self._dispatcher.finish(answered, answers)
                if more is not None:
                    self._park(more)
                if self.context.throttle_ms:
                    self._begin_mute()
            if self._pending is None:
                self._execute_frames(answers)
            self._reader.settle()
        except BaseException:
            self._send(answers)
            raise
        if answers.answered:
            self.active_at = self.answered_at = answers.now
            if received and self._connections.holds and not answers.splices:
                self._held = answers
                self._connections.hold(self)
            else:
                self._send(answers)
        elif received >= _PROGRESS_BYTES:
            self.active_at = answers.received_at
        if self._pending is not None or self._scheduled or not self._reading or self._outbox.unsent:
            self._continue_or_wait()

    def send_held(self) -> None:
        """Send the held answers; an error ends the connection."""
        held, self._held = self._held, None
        if held is None:  # closed, or sent already
            return
        try:
            self._send(held)
            if self._outbox.unsent:
                self._continue_or_wait()
        except Exception as error:  # noqa: BLE001 - as above
            self._failed(error)

    def _execute_frames(self, answers: Answers) -> None:
        if self._peer_error is not None:
            raise self._peer_error
        ends_at = answers.now + SLICE_SECONDS
        for _ in range(TURN_REQUESTS):
            if self._outbox.unsent > UNSENT_LIMIT or self._mute is not None:
                return
            frame = self._reader.next_frame()
            if frame is None:
                return
            pending = self._dispatcher.dispatch(frame, self.context, answers)
            if pending is not None:
                self._park(pending)
                return
            if self.context.throttle_ms:
                self._begin_mute()
            if answers.splices or len(answers.out) > UNSENT_LIMIT:
                self._send(answers)
                answers.clear()
            if answers.now >= ends_at:
                break
        if not self._scheduled and self._reader.has_frame():
            self._scheduled = True
            if answers.now >= ends_at:
                self._connections.dispatcher.time_slices.call(self._turn)
            else:
                self._loop.call_soon(self._turn)

    def _begin_mute(self) -> None:
        milliseconds, self.context.throttle_ms = self.context.throttle_ms, 0
        if self._state is State.OPEN and self._mute is None:
            self._read(on=False)
            self._mute = self._connections.timers.call_later(milliseconds / 1000, self._unmute)
            self._connections.muted(self)

    def _unmute(self) -> None:
        if self._mute is not None:
            self._mute.cancel()
            self._mute = None
        self._turn()

    def _park(self, pending: Pending) -> None:
        self._pending = pending
        if pending.views_frame:
            self._reader.retain()
        pending.future.add_done_callback(partial(self._answered, pending))

    def _answered(self, pending: Pending, _: object) -> None:
        if self._state is State.CLOSED:
            self._dispatcher.discard(pending)
            return
        self._pending = None
        try:
            self._execute(0, pending)
        except Exception as error:  # noqa: BLE001 - as above
            self._failed(error)

    def _send(self, answers: Answers) -> None:
        """Pass the responses so far to the outbox. Raises OSError."""
        outbox = self._outbox
        if answers.out:
            outbox.put(answers.out, answers.splices)
        if outbox.unsent:
            self._sending += [Sending(outbox.accepted, answered) for answered in answers.answered]
        else:
            now = self._monotonic()
            for metrics, received, started, handled, ready in answers.answered:
                metrics.record(received, started, handled, ready, now)

    def _sent(self) -> None:
        """Handle progress of the outbox: record the sent responses, and continue with received requests."""
        self.active_at = self.answered_at = now = self._monotonic()
        sent = self._outbox.accepted - self._outbox.unsent
        while self._sending and self._sending[0].end <= sent:
            metrics, received, started, handled, ready = self._sending.pop(0).answered
            metrics.record(received, started, handled, ready, now)
        if self._outbox.unsent <= UNSENT_LIMIT:  # else no request may be executed or read
            self._turn()

    def _continue_or_wait(self) -> None:
        """At the end of a turn that has left work: decide whether to continue reading, or to close."""
        unsent = self._outbox.unsent
        if self._state is State.OPEN:
            # A client that waits for a large answer sends nothing: stopping and resuming to read would add four system
            # calls to a Fetch of 1 MiB. If bytes have come nevertheless, reading stops.
            has_room = unsent <= UNSENT_LIMIT or (self._reading and not self._reader.buffered)
            pending = self._pending
            has_enough = self._scheduled if pending is None else pending.has_received_enough(self._reader)
            self._read(on=has_room and self._mute is None and not has_enough)
        elif self._state is State.FINISHING and not unsent and not self.is_busy:
            self.close("finished")

    def _read(self, *, on: bool) -> None:
        if on is not self._reading:
            self._reading = on
            if on:
                self._loop.add_reader(self._fd, self._readable)
                self._receive_pending()
            else:
                self._loop.remove_reader(self._fd)

    def _failed(self, error: BaseException) -> None:
        """Close because of an error, with one log line; a protocol error, after the answer of a parked request."""
        if self._state is State.CLOSED:
            return
        if self._pending is not None and isinstance(error, RemoteProtocolError):
            self._peer_error = error
            self._state = State.FINISHING
            self._read(on=False)
            return
        log_failure(error, self.context, self._connections.limited_log)
        self.close(str(error))
