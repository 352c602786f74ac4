"""Logs of other benchmarks: recognised by content, values as printed, damage named with its line."""

import contextlib
import gzip
import os
import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.errors import UsageError
from elbowroom.logs.reader import IMPORTERS, Importer, parse_log, read_log

ALL = IMPORTERS.all()
NAMES = [importer.name for importer in ALL]
NOISE = """\
Authorization required, but no authorization protocol specified
[node7:20391] 3 more processes have sent help message help-mpi-btl-base.txt
[0] MPI startup(): Multi-threaded optimized library
2 total processes failed to start
"""


def by_name(name: str) -> Importer:
    return IMPORTERS.get(name)


def rows_of(text: str) -> set[tuple[object, ...]]:
    return {(table.benchmark, *row) for table in parse_log(text, "log").tables for row in table.rows}


def damaged(text: str, seed: int) -> str:
    chance = random.Random(seed)
    lines = text.splitlines(keepends=True)
    place, at = chance.randrange(len(lines)), chance.randrange(len(text))
    kind = chance.randrange(6)
    if kind == 0:
        return text[:at]
    if kind == 1:
        return text[:at] + text[at + chance.randint(1, 6) :]
    if kind == 2:
        return text[:at] + chance.choice("x\x00\u00e9#%,; \n") + text[at + 1 :]
    if kind == 3:
        return "".join([*lines[:place], *lines[place + 1 :]])
    if kind == 4:
        lines.insert(chance.randrange(len(lines)), lines[place])
        return "".join(lines)
    return text[:at] + text[at:].replace("us", "ms").replace("MB/s", "kB/s").replace("GB/s", "Gib/s")


def test_every_importer_can_be_used():
    assert IMPORTERS.problems() == ()
    assert len(NAMES) == 9


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_is_read_by_its_importer_alone(name):
    log = parse_log(by_name(name).sample, "sample")
    assert log.benchmarks == (name,)
    assert log.ignored == ()


@pytest.mark.parametrize("name", NAMES)
def test_an_importer_has_at_most_60_lines_without_its_sample(name):
    text = Path("src/elbowroom/logs/importers", f"{name}.py").read_text()
    assert len(re.sub(r'_SAMPLE = """.*?"""', "", text, flags=re.DOTALL).splitlines()) <= 60


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "mark",
    [
        "[1,0]<stdout>:",
        "[1,mpirank:0,algo-1]<stdout>:",
        "[pod/launcher-x7/mpi] ",
        "0: ",
        " 0: ",
        "[0] ",
        "node-1: ",
        "bench_1  | ",
        "2026-03-05T12:01:1{}.1234567Z ",
        "2026-03-05 12:01:1{} ",
        "2026-03-05T12:01:1{}Z [1,0]<stdout>:",
        "    ",
    ],
)
def test_marks_of_a_launcher_change_nothing(name, mark):
    sample = by_name(name).sample
    marked = "".join(f"{mark.format(i)}{line}" for i, line in enumerate(sample.splitlines(keepends=True)))
    assert rows_of(marked) == rows_of(sample)


def test_the_numbers_of_rows_are_no_marks():
    log = by_name("netpipe").sample
    rows = [line.split(":", 1)[1] for line in log.splitlines()[1:]]
    runs = "\n".join([log.splitlines()[0], *(f"  {i}:{row}" for i, row in enumerate(rows)), ""]) * 4
    assert len(parse_log(runs, "log").tables) == 4


def test_the_names_of_values_are_no_marks():
    stream = "Function    Best Rate MB/s  Avg time     Min time     Max time\n"
    stream += "Copy:           33085.9     0.005104     0.004836     0.006060\n"
    assert [table.rows[0][0] for table in parse_log(stream * 12, "log").tables] == ["Copy"] * 12


@pytest.mark.parametrize("name", ["imb", "nccl_tests", "osu", "stream"])
def test_an_excerpt_in_an_indented_text_without_the_first_lines_is_read(name):
    lines = by_name(name).sample.splitlines()
    excerpt = lines[1:] if name in ("nccl_tests", "stream") else lines
    text = "\n".join(["The result:", "", *(f"    {line}" for line in excerpt), "", "That is fast.", ""])
    assert rows_of(text) == rows_of(by_name(name).sample)


def test_a_matrix_without_a_sum_is_read_if_it_is_whole():
    sample = by_name("nvbandwidth").sample
    assert rows_of(sample[: sample.index("SUM")]) == rows_of(sample)
    square = sample.replace("CPU(row)", "GPU(row)")
    with pytest.raises(UsageError, match=r"line 4: the line SUM host_to_device\w+ is missing, and rows"):
        parse_log(square[: square.index("SUM")], "log")


def test_ranks_that_a_log_does_not_list_are_not_counted():
    (table,) = parse_log(by_name("nccl_tests").sample, "log").tables
    assert "ranks" not in table.settings


@pytest.mark.parametrize("name", NAMES)
def test_lines_of_a_launcher_around_and_between_rows_change_nothing(name):
    lines = by_name(name).sample.splitlines(keepends=True)
    noisy = "".join(
        [NOISE, *lines[:-1], "node3:3442:3442 [0] NCCL INFO Launch mode Parallel\n", lines[-1], NOISE]
    )
    assert rows_of(noisy) == rows_of(by_name(name).sample)


def test_several_benchmarks_in_one_log_are_read_one_after_the_other():
    log = parse_log("\n".join(importer.sample for importer in ALL), "log")
    assert log.benchmarks == tuple(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_compressed_log_is_read_and_a_cut_one_refused(name, tmp_path):
    data = gzip.compress(by_name(name).sample.encode())
    (tmp_path / "whole.gz").write_bytes(data)
    (tmp_path / "cut.gz").write_bytes(data[:-9])
    assert read_log(tmp_path / "whole.gz").benchmarks == (name,)
    with pytest.raises(UsageError, match="damaged or cut"):
        read_log(tmp_path / "cut.gz")


@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_log_gives_rows_that_were_printed_or_a_sentence_with_the_line(name):
    sample = by_name(name).sample
    whole, refusals = rows_of(sample), list[str]()
    for seed in range(200):
        text = damaged(sample, seed)
        try:
            rows = rows_of(text)
        except UsageError as error:
            refusals.append(str(error))
            continue
        # A digit that is missing in a whole number, or a changed name, cannot be seen in one row.
        changed = [row for row in rows if row not in whole and not str(row[-1]).isdigit()]
        assert len(changed) <= 1, (text, changed)
    assert refusals
    assert all(re.search(r"line \d+: |known are", refusal) for refusal in refusals)


def test_two_outputs_mixed_line_by_line_are_refused():
    first = by_name("imb").sample.splitlines()
    mixed = "\n".join(line for line in first for _ in range(2)) + "\n"
    with pytest.raises(UsageError, match=r"line \d+: .*mixed"):
        parse_log(mixed, "log")


@pytest.mark.parametrize(
    ("name", "before", "after", "message"),
    [
        ("osu", "8192.00", "8192.0", "line 5: bandwidth: 8192.0 has 1 digits after the point, 2 above"),
        ("osu", "4096 ", "4096x", "line 5: size: '4096x' is not a number"),
        ("osu", "8192.00", "9192.00", "line 5: MB/s, messages/s and size do not agree"),
        ("imb", "t[usec]", "t[fortnight]", "line 3: unknown unit fortnight"),
        ("nccl_tests", "(GB/s)", "(MB/s)", "line 2: the units are not us and GB/s"),
        ("nvbandwidth", "25.50", "35.50", "line 4: the values do not add up to the sum 75.50"),
        ("stream", "0.010000", "0.020000", "rate and minimum time do not agree"),
        ("likwid_bench", "20000.00", "2000.00", "line 8: data volume, time and MByte/s do not agree"),
        ("mpi_stream", "node1\t\t12000", "node1\t\t12001", "the largest rate is 12001.5"),
        ("allpairs", "1,0,", "0,1,", "line 3: the pair 0,1 is on line 2 already"),
        ("allpairs", "1,0,", "1,1,", "line 3: rank 1 is paired with itself"),
        ("allpairs", "src,dst", "von,nach", "line 2: no heading names the columns"),
        ("netpipe", "1562.50 Mbps", "1562.50 Mbqs", "line 3: is not size, times, rate and time"),
    ],
)
def test_damage_is_named_with_its_line(name, before, after, message):
    with pytest.raises(UsageError) as caught:
        parse_log(by_name(name).sample.replace(before, after), "log")
    assert message in str(caught.value)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(UsageError):
        assert parse_log(text, "log").tables


def test_rows_of_an_unknown_benchmark_are_named_and_not_counted():
    log = parse_log(by_name("osu").sample + "\nmybench\n1 2.0 3.0\n2 4.0 5.0\n", "log")
    assert log.ignored == (8, 9)
    assert len(log.tables) == 1


def public_logs() -> list[Path]:
    root = Path(os.environ.get("ELBOWROOM_PUBLIC_FILES", "/nonexistent"))
    return [
        path
        for kind in ("osu", "omb", "imb", "nccl", "stream", "allpairs")
        for path in sorted(root.glob(f"{kind}/*"))
    ]


@pytest.mark.skipif(not public_logs(), reason="ELBOWROOM_PUBLIC_FILES names no folder of public logs")
@pytest.mark.parametrize("path", public_logs(), ids=lambda path: path.name)
def test_values_of_a_public_log_are_those_printed(path):
    if path.name == "help.txt":
        with pytest.raises(UsageError, match="is not the log of a known benchmark"):
            read_log(path)
        return
    log = read_log(path)
    lines = re.split(r"\r\n|\n|\r", path.read_text())
    assert log.ignored == ()
    for table in log.tables:
        for number, row in zip(table.lines, table.rows, strict=True):
            printed = [
                float(word) for word in re.findall(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?", lines[number - 1])
            ]
            measured = [cell for column, cell in zip(table.columns, row, strict=True) if not column.key]
            assert all(float(cell) in printed for cell in measured if isinstance(cell, (int, float)))
