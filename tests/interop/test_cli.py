"""The commands of the README: `python -m client produce` and `consume`, each a process."""

from __future__ import annotations

import subprocess
import sys

from tests.peers import kcat


def client(*arguments: str, stdin: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-m", "odradek.client", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


def test_a_line_becomes_a_record_and_is_printed_again(bootstrap: str, topic_name: str) -> None:
    client("produce", "--bootstrap-server", bootstrap, "--topic", topic_name, stdin="hello\nworld\n")
    printed = client(
        *("consume", "--bootstrap-server", bootstrap, "--topic", topic_name),
        *("--from-beginning", "--max-messages", "2"),
    )
    assert printed == "hello\nworld\n"


def test_kcat_and_the_command_read_each_others_records(bootstrap: str, topic: str) -> None:
    client("produce", "--bootstrap-server", bootstrap, "--topic", topic, stdin="ours\n")
    kcat.produce(bootstrap, topic, "theirs", "-z", "snappy")
    assert [record["payload"] for record in kcat.consume(bootstrap, topic, "-o", "beginning")] == ["ours", "theirs"]
    assert (
        client(
            *("consume", "--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning", "--max-messages", "2")
        )
        == "ours\ntheirs\n"
    )


def test_an_unreachable_broker_is_an_error_of_one_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "odradek.client", "produce", "--bootstrap-server", "127.0.0.1:9", "--topic", "t"],
        input="x\n", capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "127.0.0.1:9" in done.stderr
    assert "Traceback" not in done.stderr
