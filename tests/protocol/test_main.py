"""The command `python -m protocol`: its output, its errors, and the examples of the guide."""

from __future__ import annotations

import io
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.protocol import codec
from odradek.protocol.__main__ import run as run_line
from odradek.protocol.api import NAMES, by_key, by_name
from odradek.protocol.schema import Structure, fields
from tests.effort import some

WIRE = Path(__file__).parent / "data" / "wire"
GUIDE = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()
TRANSCRIPTS = re.findall(r"```console\n\$ odradek protocol ([^\n]*)\n(.*?)```", GUIDE, re.DOTALL)
PRODUCE = json.loads((WIRE / "Produce_v7_0.json").read_text())


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = run_line(arguments)
    return status, *capsys.readouterr()


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the error message for refused arguments."""
    with pytest.raises(SystemExit) as caught:
        run_line(arguments)
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    return err


@pytest.mark.parametrize(("command", "shown"), TRANSCRIPTS, ids=[command[:40] for command, _ in TRANSCRIPTS])
def test_the_guide_shows_what_the_command_prints(capsys: pytest.CaptureFixture[str], command: str, shown: str) -> None:
    _, out, err = run(capsys, *shlex.split(command))
    # A line that is only an ellipsis stands for any lines.
    pattern = "".join(r"(?:.*\n)*?" if line == "…" else re.escape(line) + r"\n" for line in shown.splitlines())
    assert re.fullmatch(pattern, out + err)


def test_the_guide_has_an_example_of_every_command() -> None:
    assert {shlex.split(command)[0] for command, _ in TRANSCRIPTS} == {"list", "show", "decode"}


def test_list_has_a_line_for_each_api(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "list")
    lines = out.splitlines()[1:]
    assert status == 0
    assert [(int(line.split()[0]), line.split()[1]) for line in lines] == sorted(NAMES.items())
    assert "  1  Fetch                        4–18      from 12" in lines
    assert " 17  SaslHandshake                0–1       never" in lines


@pytest.mark.parametrize("key", some(sorted(NAMES)))
def test_show_prints_fields_and_functions_of_every_version(capsys: pytest.CaptureFixture[str], key: int) -> None:
    api = by_key(key)
    for version in range(api.min_version, api.max_version + 1):
        status, out, _ = run(capsys, "show", api.name, str(version))
        assert status == 0
        for cls in (api.request, api.response):
            for source in (codec.decoder_source(cls, version), codec.encoder_source(cls, version)):
                assert source in out
            tree = out.split(f"\n{cls.__name__} v{version}, ")[1].split("\n\n")[0]
            assert re.findall(r"^ *(\w+): ", tree, re.MULTILINE) == names_in(cls, version)


def names_in(cls: type[Structure], version: int) -> list[str]:
    """Return the names of the fields in a version, in order: tagged ones last, parts after their field."""
    names = []
    there = [field for field in fields(cls) if field.exists_in(version)]
    for field in sorted(there, key=lambda field: (field.tag is not None, field.tag)):
        names.append(field.name)
        if isinstance(field.kind, type):
            names += names_in(field.kind, version)
    return names


@pytest.mark.parametrize("key", some(sorted(NAMES)))
def test_show_prints_the_history_of_every_api(capsys: pytest.CaptureFixture[str], key: int) -> None:
    api = by_key(key)
    status, out, _ = run(capsys, "show", api.name)
    assert status == 0
    for version in range(api.min_version, api.max_version + 1):
        rows = [line for line in out.splitlines() if line.startswith("    " + f"v{version}".ljust(5))]
        assert len(rows) == 2  # request and response


def test_show_prints_added_removed_and_changed_fields(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "show", "fetch")
    assert "    v13  - topics[].topic: string\n" in out
    assert "    v17  + topics[].partitions[].replica_directory_id: uuid (tag 0)\n" in out
    assert "    v14    the same\n" in out
    _, out, _ = run(capsys, "show", "metadata")
    assert "    v1     topics: array of MetadataRequestTopic -> array of MetadataRequestTopic or null\n" in out
    _, out, _ = run(capsys, "show", "api_versions")
    assert "    v0   no fields\n" in out


def test_show_takes_its_notes_from_the_comments_beside_and_above_the_fields(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "show", "produce", "9")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "index: int32 = 0" in lines
    assert any(line.startswith("acks: int16 = 0 0 no response, 1 after the leader's append") for line in lines)
    assert any(line.startswith("transactional_id: string or null = null None unless") for line in lines)


@pytest.mark.parametrize("name", ["ListOffsets", "list_offsets", "list-offsets", "LISTOFFSETS"])
def test_an_api_is_found_by_any_spelling_of_its_name(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert run(capsys, "show", name, "1")[1].startswith("ListOffsets (API key 2), version 1 of ")


def decode(capsys: pytest.CaptureFixture[str], kind: str, *text: str) -> str:
    status, out, err = run(capsys, "decode", kind, "produce", "7", *text)
    assert (status, err) == (0, "")
    return out


def test_decode_prints_offset_bytes_field_and_value(capsys: pytest.CaptureFixture[str]) -> None:
    out = decode(capsys, "response", PRODUCE["response"])
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0] == "offset bytes field value"
    assert f"0 {bytes.fromhex(PRODUCE['response'])[:4].hex(' ')} correlation_id" in lines[1]
    assert any(re.fullmatch(r"\d+ 00 00 error_code 0 NONE", line) for line in lines)


def test_decode_accepts_white_space_anywhere_in_the_hex(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = PRODUCE["request"]
    plain = decode(capsys, "request", text)
    assert decode(capsys, "request", bytes.fromhex(text).hex(" ").upper()) == plain
    assert decode(capsys, "request", text[:9], text[9:40], text[40:]) == plain
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(re.findall(".{1,32}", text)) + "\n"))
    assert decode(capsys, "request", "-") == plain


@pytest.mark.parametrize("kind", ["request", "response"])
def test_decode_accepts_a_frame_with_its_size(capsys: pytest.CaptureFixture[str], kind: str) -> None:
    frame = bytes.fromhex(PRODUCE[kind])
    lines = decode(capsys, kind, (len(frame).to_bytes(4) + frame).hex()).splitlines()
    assert lines[1].split() == ["0", *len(frame).to_bytes(4).hex(" ").split(), "size", str(len(frame))]
    assert len(lines) == len(decode(capsys, kind, frame.hex()).splitlines()) + 1


def test_a_correlation_id_that_could_be_a_size_is_still_read(capsys: pytest.CaptureFixture[str]) -> None:
    # ListOffsets v1 without topics: correlation id 4, then four bytes of count.
    status, out, _ = run(capsys, "decode", "response", "list_offsets", "1", "00000004 00000000")
    assert status == 0
    assert "size" not in out


def test_malformed_bytes_are_explained_up_to_the_error(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "decode", "response", "list_offsets", "1", "00000001 00000001 0003 6161")
    assert status == 1
    assert out.splitlines()[-1].split() == ["8", "[0]", "ListOffsetsTopicResponse"]
    assert err == "decoding stopped at offset 10, topics[0].name: 3 bytes wanted where 2 remain\n"


def test_bytes_after_the_message_are_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, "decode", "response", "list_offsets", "1", "00000001 00000000 ff")
    assert status == 1
    assert err == "decoding stopped at offset 8, end of the message: 1 byte follows\n"


def test_empty_input_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, "decode", "request", "fetch", "4", "")
    assert status == 1
    assert err == "decoding stopped at offset 0, api_key: 2 bytes wanted where 0 remain\n"


def test_an_unknown_api_is_refused_with_the_nearest_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no API is called 'list_offset'; did you mean list_offsets?" in refused(capsys, "show", "list_offset")
    assert "no API is called 'zzzzzz'\n" in refused(capsys, "show", "zzzzzz")


@pytest.mark.parametrize("command", [["show", "fetch"], ["decode", "request", "fetch"]])
def test_a_version_outside_the_range_is_refused(capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
    assert by_name("fetch").max_version == 18
    complaint = refused(capsys, *command, "19", *(["00"] if command[0] == "decode" else []))
    assert "Fetch has versions 4 to 18, not 19" in complaint


@pytest.mark.parametrize("text", ["0", "0x00", "zz"])
def test_input_that_is_not_hex_is_refused(capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert "not whole bytes in hex" in refused(capsys, "decode", "request", "fetch", "4", text)


@pytest.mark.parametrize("arguments", [[], ["list", "more"], ["show"], ["decode", "message", "fetch", "4", "00"]])
def test_other_arguments_are_refused(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert refused(capsys, *arguments).startswith("python -m protocol")


def test_help_describes_whole_frames(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run_line(["decode", "--help"])
    assert "whole request or response: its header, its body" in " ".join(capsys.readouterr().out.split())


@pytest.mark.process
def test_the_module_runs_as_a_command() -> None:
    command = [sys.executable, "-m", "odradek.protocol", "decode", "response", "list_offsets", "1", "-"]
    done = subprocess.run(command, input="00000001 0000", capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "decoding stopped at offset 4, topics: 4 bytes wanted where 2 remain\n"


@pytest.mark.process
def test_a_closed_pipe_is_no_error() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "odradek.protocol", "show", "fetch", "18"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
