"""Every kind of file, damaged in 200 ways: a sentence, or a result that holds together."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from damage import damages
from elbowroom import api
from elbowroom.errors import ElbowroomError, UsageError
from elbowroom.launch import trace_reader
from elbowroom.logs.reader import IMPORTERS, Log, parse_log
from elbowroom.trace.overlap.chrome import read_json
from elbowroom.trace.overlap.document import TraceOverlap
from made_overlap import Recipe, kineto, make, nsight

WAYS = 200
FOLDER = os.environ.get("ELBOWROOM_PUBLIC_FILES", "")
LARGE = 300_000
"""Bytes of a public file from which fewer ways are tried."""
TRACES = ("kineto", "nsight", "rocprof", "chakra")
LOGS = ("osu", "omb", "imb", "nccl", "stream", "allpairs")


def array(seed: int) -> bytes:
    return json.dumps(json.loads(kineto(make(Recipe(seed=seed, instances=20))))["traceEvents"]).encode()


MADE: dict[str, Callable[[int], bytes]] = {
    "trace.json": lambda seed: kineto(make(Recipe(seed=seed, instances=20))),
    "lines.json": lambda seed: kineto(make(Recipe(seed=seed, instances=20))).replace(b"}, {", b"},\n{"),
    "array.json": array,
    "trace.json.gz": lambda seed: gzip.compress(kineto(make(Recipe(seed=seed, instances=20)))),
}


def holds_together(found: TraceOverlap) -> None:
    """What is true of any trace."""
    assert found.verdict
    assert 0 <= found.hidden_s <= found.comm_s <= found.span_s * (1 + 1e-9) + 1e-9
    assert found.hidden_s <= found.comp_s + 1e-12
    assert found.cost_at_most_s <= found.hidden_s * (1 + 1e-9) + 1e-12
    assert sum(one.operations for one in found.counted) <= found.events


def refusal(path: Path) -> str:
    """The sentence with which a file is refused; empty where there is an answer, which must hold together."""
    try:
        found = api.trace_overlap(path)
    except ElbowroomError as error:
        return error.sentence()
    holds_together(found)
    return ""


def parsed(text: str) -> tuple[Log | None, str]:
    """A log, or the sentence with which it is refused."""
    try:
        return parse_log(text, "log"), ""
    except UsageError as error:
        return None, error.sentence()


@pytest.mark.parametrize("name", MADE)
def test_a_damaged_trace_ends_with_a_sentence_or_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    refused = set()
    for number, damaged in enumerate(damages(MADE[name](1), WAYS, seed=len(name), other=MADE[name](2))):
        monkeypatch.setattr(trace_reader, "LARGE_JSON", 0 if number % 2 else 1 << 30)
        (tmp_path / name).write_bytes(damaged)
        refused.add(bool(refusal(tmp_path / name)))
    assert refused == {True, False}


def test_a_damaged_export_of_nsight_ends_with_a_sentence_or_a_result(tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    nsight(make(Recipe(seed=1, instances=20)), path)
    refused = set()
    for damaged in damages(path.read_bytes(), WAYS):
        path.write_bytes(damaged)
        refused.add(bool(refusal(path)))
    assert refused == {True, False}


@pytest.mark.parametrize("program", [False, True], ids=["Python", "json-events"])
@pytest.mark.parametrize("name", ["trace.json", "array.json", "trace.json.gz"])
def test_two_documents_in_one_file_are_refused_with_the_place_of_the_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, program: bool
) -> None:
    monkeypatch.setattr(trace_reader, "LARGE_JSON", 0 if program else 1 << 30)
    first, second = MADE[name](1), MADE[name](2)
    (tmp_path / name).write_bytes(first + second)
    at = len(gzip.decompress(first) if name.endswith(".gz") else first)
    with pytest.raises(UsageError, match=f"several documents: another one begins at byte {at}$|byte {at};"):
        api.trace_overlap(tmp_path / name)


@pytest.mark.parametrize("program", [False, True], ids=["Python", "json-events"])
@pytest.mark.parametrize("name", ["trace.json", "array.json", "trace.json.gz"])
def test_text_behind_a_document_is_left_out_and_its_place_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, program: bool
) -> None:
    monkeypatch.setattr(trace_reader, "LARGE_JSON", 0 if program else 1 << 30)
    document, text, path = MADE[name](1), b"srun: job 7 is done\n", tmp_path / name
    packed = name.endswith(".gz")
    path.write_bytes(document + (gzip.compress(text) if packed else text))
    at = len(gzip.decompress(document) if packed else document)
    notes = read_json(path, trace_reader.json_reader(path)).notes
    assert f"{name}: what follows from byte {at} on is no part of the trace, and is left out" in notes


def test_what_cannot_be_read_behind_the_events_is_left_out_and_its_place_is_said(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    events = b'{"traceEvents": [{"ph": "X", "name": "gemm", "ts": 1, "dur": 2}]'
    path.write_bytes(events + b', "distributedInfo": {"rank": 3')
    assert any(f"byte {len(events) + 2} on" in note for note in read_json(path).notes)


def number_in(value: float, words: set[str]) -> bool:
    """Whether a number was printed."""
    numbers = (one for one in words if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", one))
    return any(float(one) == value for one in numbers)


def public(folders: tuple[str, ...]) -> list[Path]:
    return (
        [one for name in folders for one in sorted((Path(FOLDER) / name).glob("*")) if one.is_file()]
        if FOLDER
        else []
    )


@pytest.mark.skipif(not FOLDER, reason="ELBOWROOM_PUBLIC_FILES names no folder of public traces")
@pytest.mark.parametrize("path", public(TRACES), ids=lambda path: path.name)
def test_a_damaged_public_trace_ends_with_a_sentence_or_a_result(tmp_path: Path, path: Path) -> None:
    data = path.read_bytes()
    size = len(gzip.decompress(data)) if path.suffix == ".gz" else len(data)
    for damaged in damages(data, min(WAYS, max(WAYS * LARGE // size, 4))):
        (tmp_path / path.name).write_bytes(damaged)
        refusal(tmp_path / path.name)


@pytest.mark.skipif(not FOLDER, reason="ELBOWROOM_PUBLIC_FILES names no folder of public traces")
@pytest.mark.parametrize("archive", sorted((Path(FOLDER) / "otf2").glob("*")), ids=lambda path: path.name)
def test_a_damaged_public_archive_ends_with_a_sentence_or_a_result(tmp_path: Path, archive: Path) -> None:
    files = [one for one in sorted(archive.rglob("*")) if one.is_file() and one.stat().st_size]
    for number in range(20):
        copy = tmp_path / str(number)
        shutil.copytree(archive, copy)
        file = copy / files[number * 7 % len(files)].relative_to(archive)
        file.chmod(0o644)
        file.write_bytes(next(damages(file.read_bytes(), 1, seed=number)))
        refusal(copy)


@pytest.mark.skipif(not FOLDER, reason="ELBOWROOM_PUBLIC_FILES names no folder of public logs")
@pytest.mark.parametrize("path", public(LOGS), ids=lambda path: path.name)
def test_a_damaged_public_log_gives_rows_that_stand_in_it_or_a_sentence_with_the_line(path: Path) -> None:
    others = [one for one in public(LOGS) if one.parent != path.parent]
    data = path.read_bytes()
    for number, damaged in enumerate(damages(data, WAYS, other=others[len(data) % len(others)].read_bytes())):
        text = damaged.decode("utf-8", "replace")
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        log, sentence = parsed(text)
        assert log or " line " in sentence or "known are" in sentence, (number, sentence)
        for table in log.tables if log else ():
            for row, line in zip(table.rows, table.lines, strict=True):
                printed = set(re.split(r"[\s,:]+", lines[line - 1]))
                assert all(number_in(cell, printed) for cell in row if isinstance(cell, float)), (number, row)


@pytest.mark.parametrize("name", [one.name for one in IMPORTERS.all()])
def test_a_log_with_another_program_s_output_in_its_midst_says_where_or_has_the_rows_of_both(
    name: str,
) -> None:
    samples = {one.name: one.sample.encode() for one in IMPORTERS.all()}
    for other in sorted(set(samples) - {name}):
        lines = samples[name].splitlines(keepends=True)
        for at in range(1, len(lines)):
            mixed = b"".join([*lines[:at], samples[other], *lines[at:]]).decode()
            log, sentence = parsed(mixed)
            assert log or " line " in sentence, sentence
            printed = mixed.split("\n")
            for table in log.tables if log else ():
                for row, line in zip(table.rows, table.lines, strict=True):
                    assert all(str(cell) in printed[line - 1] for cell in row if isinstance(cell, str))
