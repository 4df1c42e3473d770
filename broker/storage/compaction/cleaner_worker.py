"""The process that compacts; `cleaner_process` starts it with the broker's process id as its one argument.

Compaction computes on every record: in the broker's own process it would hold the interpreter that requests wait for.
So this process does the work, at the lowest priority (set by `cleaner_process`) and with pauses for the broker
(`pace`). It reads jobs and files, and writes files and answers. It logs nothing; errors are answers.

It must not outlive a killed broker: the next broker removes `.cleaned` files when it starts, and none may appear after
that. On Linux the kernel kills this process together with the broker; elsewhere the end of standard input ends it, a
moment later.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from functools import partial
from queue import SimpleQueue
from threading import Thread

from odradek.broker.clock import SystemClock
from odradek.broker.storage.batch_scan import CorruptBatchError
from odradek.broker.storage.compaction.cleaning_job import (
    Answer,
    CleaningFailed,
    CleaningJob,
    NextGroup,
    receive_message,
    send,
)
from odradek.broker.storage.compaction.log_cleaning import LogCleaning
from odradek.broker.storage.compaction.pace import Pace, no_pause, scheduled_turns
from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.storage.index.index_file import CorruptIndexError
from odradek.protocol.errors import RemoteProtocolError

_OPEN_FILES = 16
_PR_SET_PDEATHSIG = 1  # of Linux's prctl.h


def main() -> None:
    """Process one job after the other, until the broker ends."""
    broker_pid = int(sys.argv[1])
    _end_with(broker_pid)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the broker receives it as well, and ends this process
    messages: SimpleQueue[CleaningJob | NextGroup] = SimpleQueue()
    Thread(target=_listen, args=(messages,), daemon=True).start()
    while True:
        job = messages.get()
        assert isinstance(job, CleaningJob)
        _work(job, messages, broker_pid)


def _end_with(broker_pid: int) -> None:
    """Let the kernel kill this process when the broker ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != broker_pid:  # the broker has ended already
        sys.exit()


def _listen(messages: SimpleQueue[CleaningJob | NextGroup]) -> None:
    while (message := receive_message(sys.stdin.buffer)) is not None:
        messages.put(message)
    os._exit(0)


def _work(job: CleaningJob, messages: SimpleQueue[CleaningJob | NextGroup], broker_pid: int) -> None:
    descriptors = DescriptorCache(OsFiles(), _OPEN_FILES)
    clock = SystemClock()
    step = no_pause if job.is_overdue else Pace(clock, partial(scheduled_turns, broker_pid)).step
    answer: Answer
    try:
        cleaning = LogCleaning(job, descriptors, clock, step)
        for group in cleaning:
            send(sys.stdout.buffer, group)
            messages.get()
        answer = cleaning.done
    except OSError as error:
        answer = CleaningFailed(error.strerror or str(error), error.errno or 0)
    except (CorruptBatchError, CorruptIndexError, RemoteProtocolError) as error:
        answer = CleaningFailed(str(error))
    finally:
        descriptors.close()
    send(sys.stdout.buffer, answer)


if __name__ == "__main__":
    main()
