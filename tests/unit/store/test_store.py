"""Run folders and journals: what is torn, damaged, newer, locked or refused by the disk."""

from __future__ import annotations

import collections
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from elbowroom import cli
from elbowroom.errors import MachineError, UsageError
from elbowroom.files import write_atomically
from elbowroom.points.unit import Entry, Unit
from elbowroom.store import journal as journals
from elbowroom.store.folder import RunFolder
from elbowroom.store.journal import Journal, failed_entry, read_journal
from elbowroom.store.sealed import seal, table


def entry(repetition: int, status: str = "ok") -> Entry:
    return Entry(point="p", repetition=repetition, record={"status": status, "phases": []})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "samples.jsonl"
    file.write_bytes(journals.HEADER)
    return file


def write(path: Path, count: int) -> None:
    journal = Journal(path)
    for repetition in range(count):
        journal.append(entry(repetition))
    journal.close()


def test_what_was_appended_is_read_back_in_order(path: Path) -> None:
    write(path, 3)
    entries, size = read_journal(path)
    assert [item.repetition for item in entries] == [0, 1, 2]
    assert size == path.stat().st_size


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_torn_last_line_is_as_if_never_written(path: Path, cut: int) -> None:
    write(path, 3)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert [item.repetition for item in read_journal(path)[0]] == [0, 1]


def test_resuming_cuts_a_torn_line_off_before_it_writes(path: Path) -> None:
    write(path, 2)
    sound = path.read_bytes()
    path.write_bytes(sound + b'{"point": "p", "repet')
    journal = Journal(path)
    assert path.read_bytes() != sound, "a run that is not resumed after all stays as it was"
    journal.append(entry(2))
    assert path.read_bytes().startswith(sound + b'{"point"')
    journal.close()
    assert len(read_journal(path)[0]) == 3


@pytest.mark.parametrize(
    "line", [b"garbage\n", b"{}\n", b"\n", b"\0\0\0\n", b'{"point":"p","repetition":"x","record":{}}\n']
)
def test_damage_before_the_end_names_file_and_line(path: Path, line: bytes) -> None:
    write(path, 2)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[1], line, lines[2]]))
    with pytest.raises(UsageError, match="line 3 is damaged") as caught:
        read_journal(path)
    assert caught.value.value == str(path)
    assert caught.value.exit_code == 2


SHAPES: dict[str, dict[str, object]] = {
    "record is a number": {"record": 3},
    "phases are a number": {"record": {"phases": 3}},
    "phases are null": {"record": {"phases": None}},
    "a phase is a number": {"record": {"phases": [3]}},
    "a phase without its name": {"record": {"phases": [{"index": 0}]}},
    "a phase's name is a number": {"record": {"phases": [{"phase": 3}]}},
    "comp is a number": {"record": {"phases": [{"phase": "A", "comp": 5}]}},
    "a rate is text": {"record": {"phases": [{"phase": "A", "comp": {"rate": "x", "unit": "MB/s"}}]}},
    "a value without a unit": {"record": {"phases": [{"phase": "B", "comm": {"value": 1.0}}]}},
    "batches are text": {
        "record": {"phases": [{"phase": "B", "comm": {"value": 1.0, "unit": "us", "batches": ["x"]}}]}
    },
    "flags are a number": {"record": {"flags": 3}},
    "a phase's flags are a number": {"record": {"phases": [{"phase": "A", "flags": 3}]}},
    "a reason is a number": {"record": {"reason": 3}},
    "a status is a number": {"record": {"status": 3}},
    "seconds are text": {"record": {"phases": [{"phase": "A", "measured_s": "x"}]}},
    "a moment is text": {"record": {"phases": [{"phase": "A", "start_ns": "x"}]}},
    "what was observed is a number": {"record": {"phases": [{"phase": "A", "observed": 3}]}},
    "a repetition below 0": {"repetition": -1},
    "a repetition beyond all": {"repetition": 10**30},
    "closing is text": {"closing": "x"},
}


@pytest.mark.parametrize("change", SHAPES.values(), ids=SHAPES)
def test_a_line_of_another_shape_is_damage(path: Path, change: dict[str, object]) -> None:
    line = {"point": "p", "repetition": 0, "record": {}, **change}
    # msgspec writes no number of that size.
    path.write_bytes(journals.HEADER + json.dumps(line).encode() + b"\n")
    with pytest.raises(UsageError, match="line 2 is damaged"):
        read_journal(path)


@pytest.mark.parametrize("number", ["1e-320", "5E-324", "0." + 320 * "0" + "1"])
@pytest.mark.parametrize("field", ["value", "batches"])
def test_a_number_too_small_for_any_machine_is_damage(path: Path, number: str, field: str) -> None:
    write(path, 1)
    given = {"value": "1.0", "batches": "1.0"} | {field: number}
    value = f'{{"value": {given["value"]}, "unit": "us", "batches": [{given["batches"]}]}}'
    record = f'{{"phases": [{{"phase": "A", "comm": {value}}}]}}'
    line = f'{{"point": "q", "repetition": 0, "record": {record}}}\n'
    path.write_bytes(path.read_bytes() + line.encode())
    with pytest.raises(UsageError, match=r"line 3 is damaged .*is not a measured number"):
        read_journal(path)


def test_a_unit_that_is_there_twice_is_damage(path: Path) -> None:
    write(path, 1)
    path.write_bytes(path.read_bytes() + path.read_bytes().splitlines(keepends=True)[1])
    with pytest.raises(UsageError, match="repetition 0 of p appears twice"):
        read_journal(path)


@pytest.mark.parametrize("header", [b"", b"no json\n", b'{"schema": "other", "version": 1}\n', b"[]\n"])
def test_a_journal_without_its_header_is_damage_in_line_1(path: Path, header: bytes) -> None:
    path.write_bytes(header)
    with pytest.raises(UsageError, match="line 1 is damaged"):
        read_journal(path)


def test_a_journal_of_a_newer_release_is_refused_and_says_which_reads_it(path: Path) -> None:
    path.write_bytes(msgspec.json.encode({"schema": journals.SCHEMA, "version": 99}) + b"\n")
    with pytest.raises(UsageError, match=r"newer release .* version 99.*reads up to version 1"):
        read_journal(path)


def test_only_one_process_writes_at_a_time(path: Path) -> None:
    first = Journal(path)
    with pytest.raises(UsageError, match="another process is measuring into it"):
        Journal(path)
    first.close()
    Journal(path).close()


def test_failed_entries_are_forgotten_on_demand_and_the_lock_is_kept(path: Path) -> None:
    journal = Journal(path)
    journal.append(entry(0))
    journal.append(failed_entry(Unit(point="p", repetition=1), "rank 1 died"))
    journal.drop_failed()
    assert journal.done == {Unit(point="p", repetition=0)}
    with pytest.raises(UsageError, match="another process"):
        Journal(path)
    journal.append(entry(1))
    journal.close()
    assert [item.record["status"] for item in read_journal(path)[0]] == ["ok", "ok"]


def test_a_full_disk_while_appending_is_a_sentence_and_nothing_is_half_written(path: Path) -> None:
    write(path, 2)
    before = path.read_bytes()
    journal = Journal(path)
    full = os.open("/dev/full", os.O_WRONLY)
    kept, journal._file = journal._file, full
    with pytest.raises(MachineError, match="No space left on device") as caught:
        journal.append(entry(2))
    journal._file = kept
    os.close(full)
    journal.close()
    assert "free space" in caught.value.hint
    assert path.read_bytes() == before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system takes root")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_fills_up_leaves_what_was_measured(small_disk: Path) -> None:
    path = small_disk / "samples.jsonl"
    path.write_bytes(journals.HEADER)
    journal = Journal(path)
    padded = [Entry(point="p", repetition=number, record={"padding": "x" * 5000}) for number in range(1000)]
    with pytest.raises(MachineError, match="No space left"):
        collections.deque(map(journal.append, padded), maxlen=0)
    written = len(journal.done)
    journal.close()
    assert 0 < written < 1000
    assert len(read_journal(path)[0]) == written


def test_a_full_disk_keeps_the_earlier_version_of_a_file(small_disk: Path) -> None:
    file = small_disk / "manifest.json"
    write_atomically(file, b"earlier", own=True)
    with pytest.raises(MachineError, match="No space left"):
        write_atomically(file, b"x" * 10**6, own=True)
    assert file.read_bytes() == b"earlier"
    assert [item.name for item in small_disk.iterdir()] == ["manifest.json"]


def test_a_run_whose_disk_filled_up_is_completed_when_there_is_room(
    small_disk: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run, quiet = small_disk / "a run", ["--no-report", "--no-open"]
    words = ["run", "quick", "--machine", "henri", "--kernels", "prime", "--sizes", "4", "--repeat", "300"]
    assert cli.run([*words, "--out", str(run), *quiet]) == 1
    assert "No space left on device" in capfd.readouterr().err
    before = RunFolder.open(run).entries()
    assert 0 < len(before) < 301
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    assert cli.run(["run", "--resume", str(run), *quiet]) == 0
    after = RunFolder.open(run).entries()
    assert after[: len(before)] == before
    assert len({item.unit for item in after}) == len(after) == 301


@pytest.mark.parametrize("name", [b"a run", b"\xff", b"a'b\"c", "münchen".encode()])
def test_the_name_of_a_run_folder_may_be_any(recorded: Path, tmp_path: Path, name: bytes) -> None:
    run = RunFolder.open(recorded)
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
    new = RunFolder.create(path, run.manifest, run.topology(), run.entries())
    journal = new.journal()
    journal.close()
    seal(new.parquet_path, new.entries(), new.manifest.points, own=True)
    assert RunFolder.open(path).entries() == run.entries()


def test_a_run_folder_is_never_overwritten(recorded: Path) -> None:
    run = RunFolder.open(recorded)
    before = (recorded / "manifest.json").read_bytes()
    with pytest.raises(UsageError, match="already exists"):
        RunFolder.create(recorded, run.manifest, run.topology())
    assert (recorded / "manifest.json").read_bytes() == before


def test_a_run_folder_exists_whole_or_not_at_all(recorded: Path, tmp_path: Path) -> None:
    run = RunFolder.open(recorded)
    new = RunFolder.create(tmp_path / "new", run.manifest, run.topology())
    assert sorted(file.name for file in new.path.iterdir()) == [
        "manifest.json",
        "samples.jsonl",
        "topology.xml",
    ]
    assert RunFolder.open(new.path).manifest == run.manifest
    assert not list(tmp_path.glob(".*.tmp"))


def test_a_place_that_cannot_be_written_is_a_sentence(recorded: Path) -> None:
    run = RunFolder.open(recorded)
    with pytest.raises(UsageError, match="cannot be written") as caught:
        RunFolder.create(Path("/proc/new"), run.manifest, run.topology())
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("manifest.json", b"{", "manifest .* is damaged"),
        ("manifest.json", b"[]", "does not have the schema"),
        (
            "manifest.json",
            b'{"schema": "elbowroom/manifest", "version": 1}',
            "elbowroom: is missing",
        ),
        ("manifest.json", b'{"schema": "elbowroom/manifest", "version": 7}', "newer release"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_named(
    recorded: Path, name: str, content: bytes, sentence: str
) -> None:
    (recorded / name).write_bytes(content)
    with pytest.raises(UsageError, match=sentence):
        RunFolder.open(recorded)


def test_a_missing_run_and_a_folder_that_is_none_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        RunFolder.open(tmp_path / "nothing")
    with pytest.raises(UsageError, match="is not a run folder"):
        RunFolder.open(tmp_path)


def test_the_sealed_table_holds_every_phase_of_the_journal(recorded: Path, tmp_path: Path) -> None:
    import pyarrow.parquet

    run = RunFolder.open(recorded)
    entries = run.entries()
    seal(tmp_path / "s.parquet", entries, run.manifest.points)
    rows = pyarrow.parquet.read_table(tmp_path / "s.parquet").to_pylist()
    phases = [phase for item in entries for phase in item.record["phases"]]
    sides = sum(("comp" in phase) + ("comm" in phase) for phase in phases)
    assert len(rows) == sides
    first = next(row for row in rows if row["side"] == "communication")
    told = next(phase for phase in phases if "comm" in phase)
    assert first["batches"] == told["comm"]["batches"]
    assert first["value"] == told["comm"]["value"]


def test_a_failed_unit_keeps_a_row(recorded: Path) -> None:
    run = RunFolder.open(recorded)
    point = run.manifest.points[0].id
    failed = failed_entry(Unit(point=point, repetition=0), "rank 1 died")
    (row,) = table([failed], run.manifest.points).to_pylist()
    assert (row["unit_status"], row["reason"], row["phase"]) == ("failed", "rank 1 died", None)
