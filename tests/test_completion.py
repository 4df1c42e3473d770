"""`odradek completion`: the scripts, run by real shells. Both get the same lines and must complete the same words.

bash reads its script, and its function is called as bash calls it. zsh finds its script in $fpath and completes in an
interactive shell on a pseudo-terminal (zpty); its `compadd`, which adds a match, also writes it to a file.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from odradek.commands import GROUPS, WITHOUT_ITS_GROUP
from tests.peers.availability import program

pytestmark = pytest.mark.process

REPOSITORY = Path(__file__).resolve().parents[1]
TYPED = [typed for group in GROUPS.values() for typed in group]

BASH = r"""
source "$1"
function=$(complete -p odradek | sed 's/.*-F \([^ ]*\).*/\1/')
compopt() { :; }  # bash has it only while it completes
while IFS= read -r line; do
  read -ra COMP_WORDS <<< "$line"
  [[ $line == *' ' ]] && COMP_WORDS+=('')
  COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 )) COMPREPLY=()
  "$function" odradek "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
  echo "${COMPREPLY[@]}"
done
"""

ZSH = r"""
zmodload zsh/zpty
zpty shell "zsh -f -i"
zpty -w shell "source $1 $2 $3"
zpty -r shell output $'*\x03'
while IFS= read -r line; do
  zpty -w -n shell "$line"$'\t'
  zpty -r shell output $'*\x03'
  zpty -w -n shell $'\x15'
  tr '\n' ' ' < $3; echo
  : > $3
done
zpty -d shell
"""

ZSH_SETUP = r"""
matches=$2
PS1= PS2=
setopt no_auto_list
fpath+=${1:h}
autoload -Uz compinit && compinit -u -D
compadd() {
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
  local -a hits
  builtin compadd -O hits "$@"
  print -rl -- $hits >> $matches
  builtin compadd "$@"  # zsh tries other words, such as all files, if there is no match
}
finish() { print -n '\x03'; comppostfuncs=(finish) }  # zsh forgets these functions when it has called them
comppostfuncs=(finish)
print -n '\x03'
"""

Complete = Callable[[Sequence[str]], list[list[str]]]


def script_of(shell: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "odradek", "completion", shell],
        capture_output=True, text=True, check=True, cwd=REPOSITORY, stdin=subprocess.DEVNULL,
    ).stdout  # fmt: skip


@pytest.fixture(scope="module", params=["bash", "zsh"])
def complete(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Complete:
    """A function that returns what the shell offers for each line, in a directory with `data.txt` and `logs/`."""
    shell = program(request.param, request.param)
    files = tmp_path_factory.mktemp("files")
    (files / "data.txt").touch()
    (files / "logs").mkdir()
    directory = tmp_path_factory.mktemp(request.param)
    script, setup, matches = directory / "_odradek", directory / "setup", directory / "matches"
    script.write_text(script_of(request.param))
    setup.write_text(ZSH_SETUP)
    matches.touch()
    command = {
        "bash": [shell, "-c", BASH, "bash", str(script)],
        "zsh": [shell, "-f", "-c", ZSH, "zsh", str(setup), str(script), str(matches)],
    }[request.param]

    def offered(lines: Sequence[str]) -> list[list[str]]:
        done = subprocess.run(
            command, input="".join(f"odradek {line}\n" for line in lines), capture_output=True, text=True,
            timeout=60, check=False, cwd=files,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        return [line.split() for line in done.stdout.splitlines()]

    return offered


def test_every_command_is_completed_from_half_of_its_name(complete: Complete) -> None:
    lines = [typed[: len(typed) - len(typed.split()[-1]) // 2] for typed in [*TYPED, *WITHOUT_ITS_GROUP]]
    offered = complete(lines)
    assert len(offered) == len(lines)
    names = [typed.split()[-1] for typed in [*TYPED, *WITHOUT_ITS_GROUP]]
    assert [line for line, name, words in zip(lines, names, offered, strict=True) if name not in words] == []


def test_all_commands_are_offered_where_none_is_typed(complete: Complete) -> None:
    [offered] = complete([""])
    assert {typed.split()[0] for typed in TYPED} <= set(offered)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tra", {"transactions"}),
        ("completion ", {"bash", "zsh"}),
        ("topics cr", {"create"}),
        ("--boot", {"--bootstrap-server"}),
        ("decode re", {"request", "response"}),
        ("groups reset-offsets --to-e", {"--to-earliest"}),
        ("topics create --par", {"--partitions"}),
        ("perf e2e --num", {"--num-records"}),
        ("metadata dump --over", {"--override"}),
        ("users re", {"remove"}),
        ("users add --mechanism SCRAM-SHA-5", {"SCRAM-SHA-512"}),
        ("users list --config da", {"data.txt"}),
        ("pipeline export --format p", {"parquet"}),
        ("produce --compression-type z", {"zstd"}),
        ("protocol decode re", {"request", "response"}),
        ("produce --file da", {"data.txt"}),
        ("broker --config da", {"data.txt"}),
        ("dump-log --files da", {"data.txt"}),
        ("inspect lo", {"logs"}),
        ("inspect ", {"logs"}),
        ("dev --dir lo", {"logs"}),
        ("xyz", set()),
    ],
)
def test_a_line_is_completed(complete: Complete, line: str, expected: set[str]) -> None:
    [offered] = complete([line])
    assert {word.rstrip("/") for word in offered} == expected
