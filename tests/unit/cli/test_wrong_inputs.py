"""Every option and argument of every command, with wrong values: one sentence, an exit code, nothing else."""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import elbowroom
import trace_stand_ins
import wrong_files
import wrong_inputs
from elbowroom import cli
from elbowroom.api import machine_text
from elbowroom.cli.commands import group
from elbowroom.launch import build

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 20
"""After so long without an answer a command counts as hanging; a busy machine needs a second or two."""
MEMORY = 8 << 30
NO_JSON = "NaN or Infinity, which is not JSON"
SENTENCE = re.compile(r"elbowroom: [^\n:]+(?: .+)?: .+; .+\n", re.DOTALL)


class Hangs(BaseException):
    """No answer in time."""


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory, thesis_curves: Any) -> Path:
    """A folder with what the table names."""
    from elbowroom.store.curves import write_curves

    folder = tmp_path_factory.mktemp("sandbox")
    build.simulator()
    wrong_files.furnish(folder, ROOT / "tests" / "data" / "quick", ROOT / "docs")
    write_curves(folder / "curves.csv", thesis_curves())
    trace_stand_ins.recorded(folder / "t")
    wrong_files.machines(folder / "bad", machine_text(elbowroom.virtual_machine("henri")))
    assert cli.run(["import", str(folder / "curves.csv"), "-o", str(folder / "curves")]) == 0
    assert cli.run(["import", str(folder / "one-point.csv"), "-o", str(folder / "bad" / "one-point")]) == 0
    return folder


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch, sandbox: Path, tmp_path: Path) -> Iterator[None]:
    """An alarm for commands that hang, and a limit to their memory; a reader of traces that is a stand-in."""
    monkeypatch.setenv("ELBOWROOM_TRACE_READER", str(trace_stand_ins.reader(tmp_path)))
    monkeypatch.setenv("ELBOWROOM_TRACE_LIBRARIES", str(tmp_path))
    monkeypatch.setenv("ELBOWROOM_PROBE", "/bin/false")
    monkeypatch.setenv("ELBOWROOM_CLOCK_SIMULATOR", "/bin/false")
    monkeypatch.setenv("ELBOWROOM_BROADCAST_BENCH", "/bin/false")
    monkeypatch.chdir(sandbox)

    def ring(number: int, frame: object) -> None:
        raise Hangs

    before = signal.signal(signal.SIGALRM, ring)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def contents(folder: Path) -> dict[str, tuple[int, ...]]:
    """What is in a folder: kind, size, time of change and number of every entry."""
    found = {}
    for where, folders, files in os.walk(folder):
        for name in (*folders, *files):
            status = os.lstat(os.path.join(where, name))
            size = 0 if name in folders else status.st_size
            changed = 0 if name in folders else status.st_mtime_ns
            found[os.path.join(where, name)] = (status.st_mode, size, changed, status.st_ino)
    return found


def with_json(words: list[str]) -> list[str]:
    """The words with --json behind the command's name; as they are where there is no such command."""
    command: click.Command = group
    index = 0
    for word in words:
        if not isinstance(command, click.Group) or word not in command.commands:
            break
        command = command.commands[word]
        index += 1
    return [*words[:index], "--json", *words[index:]] if not isinstance(command, click.Group) else words


def faults(
    words: list[str], sandbox: Path, before: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> list[str]:
    """What is wrong with the answer to these words; nothing where all is well. `before`: what the sandbox
    contains.
    """
    words = with_json(words)
    code: object = None
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        code = cli.run(words)
    except Hangs:
        return ["hangs"]
    except BaseException as error:  # whatever would end in a traceback
        return [f"traceback: {type(error).__name__}: {error}"[:300]]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        out, err = capfd.readouterr()
        left = contents(sandbox)
        if left != before:
            repair(sandbox, before, left)
    allowed = {2} | ({1} if any(text in " ".join(words) for text in wrong_inputs.MACHINE_FAILED) else set())
    found = [f"exit code {code}"] if code not in allowed else []
    lines = [line for line in err.splitlines(keepends=True) if line.strip()]
    if len(lines) != 1:
        found.append(f"{len(lines)} lines: {err[:300]!r}")
    elif not SENTENCE.fullmatch(lines[0]):
        found.append(f"no field or no hint: {lines[0]!r}")
    if "this is a defect" in err or "Errno" in err or " object at 0x" in err:
        found.append(f"words of the interpreter: {err[:300]!r}")
    if left != before:
        found.append(f"left or changed: {sorted(set(left.items()) ^ set(before.items()))[:2]}")
    return [*found, *(json_faults(out) if "--json" in words else [])]


def json_faults(out: str) -> list[str]:
    try:
        error = json.loads(out, parse_constant=lambda name: NO_JSON)["error"]
    except (ValueError, KeyError, TypeError):
        return [f"no object: {out[:200]!r}"]
    whole = error["field"] and error["message"] and error["hint"] and error["value"] != NO_JSON
    return [] if whole else [f"object lacks a field, or is not JSON: {error}"]


def repair(sandbox: Path, before: dict[str, Any], left: dict[str, Any]) -> None:
    """Takes away what a wrong command left, so that it spoils no other's test."""
    for name in sorted(set(left) - set(before)):
        path = Path(name)
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)


PAGE = (ROOT / "docs" / "reference" / "bad-input.md").read_text(encoding="utf-8")
SECTION = re.search(r"^## Every command$(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| `([^`]+)` \| (`+)(.+?)\2 \|$", re.MULTILINE)


@pytest.mark.parametrize(
    ("line", "answer"),
    [(row[0], row[2].strip()) for row in ROW.findall(SECTION[1] if SECTION else "")],
)
def test_what_the_documentation_says_of_a_wrong_command_line_is_its_answer(
    line: str, answer: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(shlex.split(line)) == 2
    parts = [re.escape(part) for part in answer.split("…")]
    err = capfd.readouterr().err
    assert re.fullmatch(f"elbowroom: {'.*'.join(parts)}\n", err), err


CASES = list(wrong_inputs.cases(whole=os.environ.get("ELBOWROOM_EXPLORE") == "1"))


def test_the_table_is_long_and_names_every_option() -> None:
    lines = [words for _, words in wrong_inputs.targets()]
    missing = []
    for path, command in commands(group, ()):
        used = {word for line in lines if tuple(line[: len(path)]) == path for word in line}
        missing += [
            f"{' '.join(path)} {option.opts[-1]}"
            for option in command.params
            if isinstance(option, click.Option) and not option.is_flag and not used & set(option.opts)
        ]
    assert not missing
    assert len(CASES) >= 400


def test_the_targets_of_a_kind_share_all_its_values() -> None:
    counts = Counter(kind for kind, _ in wrong_inputs.targets())
    for kind, values in wrong_inputs.VALUES.items():
        shares = [set(wrong_inputs.share(values, number, counts[kind])) for number in range(counts[kind])]
        assert all(shares), kind
        assert set().union(*shares) == set(values), kind


def commands(
    command: click.Command, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if isinstance(command, click.Group):
        for name, part in command.commands.items():
            yield from commands(part, (*path, name))
    else:
        yield path, command


NAMES = {" ".join(words[: 2 if words[0] in ("trace", "machine") else 1]) for words in CASES}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_wrong_input_of_a_command_is_answered_in_a_sentence(
    name: str, sandbox: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    wrong, before = [], contents(sandbox)
    for words in CASES:
        if words[: len(name.split())] == name.split():
            found = faults(words, sandbox, before, capfd)
            if found:
                before = contents(sandbox)
                shown = [word if len(word) < 60 else f"{word[:8]}...{word[-20:]}" for word in words]
                wrong.append(f"{shown}: {'; '.join(found)}")
    assert not wrong, f"{len(wrong)} faults:\n" + "\n".join(wrong)
