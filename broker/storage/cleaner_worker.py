"""The process that compacts: `python -m broker.storage.cleaner_worker`, started by `cleaner_process`.

The work of compaction is arithmetic on every record: in the broker's own process it would hold the interpreter that
requests wait for. So it is done here, at the lowest priority (which `cleaner_process` gives it): jobs and files in,
files and answers out. It logs nothing; what it finds wrong it answers.
"""

from __future__ import annotations

import os
import signal
import sys
from queue import SimpleQueue
from threading import Thread

from broker.clock import SystemClock
from broker.storage.batch_scan import CorruptBatchError
from broker.storage.cleaning_job import Answer, CleaningFailed, CleaningJob, GoOn, receive_message, send
from broker.storage.descriptors import DescriptorCache
from broker.storage.files import OsFiles
from broker.storage.index_file import CorruptIndexError
from broker.storage.log_cleaning import LogCleaning
from protocol.errors import RemoteProtocolError

_OPEN_FILES = 16


def main() -> None:
    """Do one job after the other, until the broker is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the broker gets it as well, and decides
    messages: SimpleQueue[CleaningJob | GoOn] = SimpleQueue()
    Thread(target=_listen, args=(messages,), daemon=True).start()
    while True:
        job = messages.get()
        assert isinstance(job, CleaningJob)
        _work(job, messages)


def _listen(messages: SimpleQueue[CleaningJob | GoOn]) -> None:
    while (message := receive_message(sys.stdin.buffer)) is not None:
        messages.put(message)
    os._exit(0)


def _work(job: CleaningJob, messages: SimpleQueue[CleaningJob | GoOn]) -> None:
    descriptors = DescriptorCache(OsFiles(), _OPEN_FILES)
    answer: Answer
    try:
        cleaning = LogCleaning(job, descriptors, SystemClock())
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
