"""The file of `groups reset-offsets --from-file`."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.client.cli.offset_reset import read_offsets
from odradek.client.record import TopicPartition


def test_each_line_is_for_its_group(tmp_path: Path) -> None:
    file = tmp_path / "offsets.csv"
    file.write_bytes('a,t,0,3\nb,t,0,5\n"c,d",t,0,7\n"e""f\r\ng",t,0,8\nh\u2028\x0c\x85i,t,0,9\nt,0,1\n'.encode())
    place = TopicPartition("t", 0)
    assert read_offsets(str(file)) == {
        "a": {place: 3}, "b": {place: 5}, "c,d": {place: 7}, 'e"f\r\ng': {place: 8}, "h\u2028\x0c\x85i": {place: 9},
        None: {place: 1},
    }  # fmt: skip


@pytest.mark.parametrize("line", ["t,0,-5", "t,-1,5", "t,0", "a,b,t,0,5", "t,zero,5", "t,0,5.5"])
def test_a_first_line_that_is_no_heading_is_not_skipped(tmp_path: Path, line: str) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text(f"{line}\nt,1,5\n")
    with pytest.raises(ValueError, match=r"line 1 of .* is not of the form topic,partition,offset: "):
        read_offsets(str(file))


def test_a_heading_and_blank_lines_are_skipped(tmp_path: Path) -> None:
    file = tmp_path / "offsets.csv"
    file.write_bytes(b'"group","topic","partition","offset"\r\n\r\n g , t , 0 , 9 \r\n')
    assert read_offsets(str(file)) == {" g ": {TopicPartition("t", 0): 9}}
