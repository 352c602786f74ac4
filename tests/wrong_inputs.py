"""The table of tests/unit/cli/test_wrong_inputs.py: wrong values, and where they can stand on a command line.

A target is a command line with `@` where the value stands. Everything else in it is right, so that the value
alone is to blame. tests/wrong_files.py makes the files that are named here.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

_HERE = Path(__file__).parent / "data"

LONG = "n" * 300
NOT_UTF8 = "caf\udce9"
ARABIC = "\u0663"

TEXTS = ("", "   ", NOT_UTF8)
NO_NUMBERS = (*TEXTS, "two", ARABIC, "0x10", "1_0", "1,5", LONG)
FILES = (
    *TEXTS, LONG, f"{LONG}/x", "missing", "bad/empty", "bad/binary", "bad/cut.json", "bad/deep.json",
    "bad/deep.toml",
    "bad/other.json", "bad/list.json", "bad/utf16.toml", "bad/fifo", "bad/zero", "bad/loop", "bad/folder",
)  # fmt: skip
TOML_FILES = (
    *TEXTS, f"{LONG}.toml", "missing.toml", "bad/empty.toml", "bad/binary.toml", "bad/deep.toml",
    "bad/utf16.toml",
    "bad/fifo.toml", "bad/zero.toml", "bad/loop.toml", "bad/folder.toml", "bad/cut.toml",
)  # fmt: skip
RUNS = (
    *TEXTS, LONG, "missing", "bad/empty", "bad/folder", "bad/fifo", "bad/zero", "bad/loop", "bad/run-empty",
    "bad/run-cut", "bad/run-binary", "bad/run-deep", "bad/run-list", "bad/run-other", "bad/run-newer",
    "bad/run-mpi", "bad/run-fifo",
    "bad/run-zero", "bad/run-folder",
)  # fmt: skip
JOURNALS = (
    "bad/journal-missing",
    "bad/journal-binary",
    "bad/journal-shape",
    "bad/journal-fifo",
    "bad/journal-zero",
    "bad/journal-folder",
    "bad/journal-deep",
    "bad/journal-newer",
    "bad/journal-points",
    *(f"bad/journal-number-{number}" for number in range(7)),
)
NEW_FILES = (*TEXTS, LONG, "folder", ".", "/", "missing/x", "model.json/x", "bad/loop/x")
NEW_FOLDERS = (*TEXTS, LONG, ".", "/", "run", "model.json", "model.json/x", "bad/fifo", "bad/loop")

SIZES = (*TEXTS, "two", ARABIC, "0x10", "1_0", LONG, "-4", "4 XB", "nan", "inf", "1.5", "1e400", "9" * 30)

VALUES: dict[str, tuple[str, ...]] = {
    "run": RUNS,
    "measured run": (*RUNS, *JOURNALS),
    "journal": JOURNALS,
    "study": tuple(
        f"bad/study-{name}"
        for name in ("newer", "unversioned", "unknown", "label", "where", "infinite", "folder")
    ),
    "job number": tuple(f"bad/job-{number}.toml" for number in range(6)),
    "accelerator job number": tuple(f"bad/gpu-job-{number}.toml" for number in range(6)),
    "jobs number": tuple(f"bad/jobs-{number}.toml" for number in range(6)),
    "load number": tuple(f"bad/load-{number}.toml" for number in range(6)),
    "apps number": tuple(f"bad/apps-{number}.toml" for number in range(6)),
    "model number": tuple(
        f"bad/model-{key}.json" for key in ("cores_first_socket", "sockets", "numa_per_socket", "nic_node")
    ),
    "curves": tuple(f"bad/curves-{number}.csv" for number in range(7)),
    "model": (*FILES, "bad/newer.json", "henry"),
    "machine": (
        *TOML_FILES, "bad/deep.xml", "bad/binary.xml", "bad/empty.xml", "bad/fifo.xml", "hneri", "henri:x"
    ),
    "wild machine": tuple(f"bad/machine-{number}.toml" for number in range(10)),
    "plan": (*TOML_FILES, "quikc", "bad/keys.toml"),
    "toml": TOML_FILES,
    "file": FILES,
    "hostfile": (
        "", NOT_UTF8, LONG, "missing", "bad/empty", "bad/binary", "bad/fifo", "bad/zero", "bad/folder"
    ),
    "trace": (*TEXTS, LONG, "missing", "bad/empty", "bad/folder", "bad/fifo", "bad/loop", "run"),
    "new file": NEW_FILES,
    "new figure": (*NEW_FILES, "figure", "figure.pdf", "folder.svg", "missing/x.svg"),
    "new folder": NEW_FOLDERS,
    "count": (*NO_NUMBERS, "0", "-1", "1.5", "nan", "1e400", "9" * 30),
    "counts": (*TEXTS, ",", "1,", "0", "-1", "1.5", "3,two", ARABIC, LONG, "9" * 30),
    "index": (*NO_NUMBERS, "-1", "1.5", "nan", "9" * 30, "4096"),
    "any index": (*NO_NUMBERS, "-1", "1.5", "nan", "9" * 30),
    "duration": (*TEXTS, "two", ARABIC, "nan", "inf", "-1", "0", "60x", "1e400", LONG, "9" * 30),
    "positive": (*NO_NUMBERS, "nan", "inf", "-inf", "1e400", "-1", "0"),
    "amount": (*NO_NUMBERS, "nan", "inf", "-inf", "1e400", "-1"),
    "text": TEXTS,
    "name": (*TEXTS, LONG, "nonesuch"),
    "size": (*SIZES, "0", "1,5"),
    "sizes": (*SIZES, "0", ",", "4,,8"),
    "bytes": (*SIZES, "1,5"),
    "list": (*TEXTS, ",", "1,", "a-b", "3-1", "1,1", ARABIC, "0-99999999", "-1", "9" * 30),
    "setting": (
        *TEXTS, "=", "x", "=1", "nonesuch=1", "repetitions=nan", "window=inf", "window=", "n=" + "9" * 30
    ),
    "parameter": (*TEXTS, "=", "x", "=1", "nonesuch=1", "line_fill_buffers=nan", "line_fill_buffers=-1"),
    "pattern": (*TEXTS, "(", "[a", "*", "(?P<a>x)(?P<a>y)"),
    "choice": (*TEXTS, "nonesuch", LONG),
    "hosts": (*TEXTS, ",", "a,,b", "-x", "a b"),
    "mpi": (*TEXTS, LONG, "/nowhere", "bad/folder", "bad/empty", "openmpj"),
    "group": (*TEXTS, "4@0", "x", "1:nan@0", "9:4@0", "0:-4@0", "0:4@9", "1:" + "9" * 30 + "@0"),
    "copy": (*TEXTS, "fast@0", "nan@0", "inf@0", "-1@0", "1000@9", "1000"),
    "memory": (
        *TEXTS, "=", "p", "=1GB/s", "x=1GB/s", "p=fast", "p=-1GB/s", "p=nan", "p=1GB",
        "p=" + "9" * 30 + "GB/s",
    ),
    "cache": (*TEXTS, "=", "p", "p=1MiB", "p=@1GB/s", "p=1MiB@", "p=-1@1GB/s", "p=1MiB@fast", "x=1MiB@1GB/s"),
    "percentage": ("nan%", "inf%", "-1%", "1e400%", "200%", "two", "5%%", "", " ", ARABIC),
    "part": ("nan", "inf", "-inf", "1e400", "two", "", ARABIC),
}  # fmt: skip

SHORT = {
    "{MODELLED}": "--cores 4 --comp-node 0 --comm-node 0",
    "{STEP}": "--comp-bytes 1GB --comm-bytes 1MB",
    "{TIMES}": "--t-comp 1 --t-comm 1 --l-comp 1.2 --l-comm 1.5",
    "{SPLIT}": "--t-comm 1 --l-comp 1.2 --l-comm 1.5",
    "{VIRTUAL}": "run sizes --machine henri --no-report --out new",
    "{LIVE}": "run sizes --dry-run --launcher mpiexec",
    "{VERIFY}": "advise henri --job job.toml --verify --machine henri --run-out new",
    "{CALIBRATE}": "calibrate --machine henri --points 3 --no-report --run-out new",
    "{STUDY}": "study denis2021 --machine henri --quick",
    "{RECORD}": "trace record -o new",
}

TARGETS = (_HERE / "wrong_targets.txt").read_text()
"""Below each kind of value the command lines where it can stand."""

LINES = (_HERE / "wrong_lines.txt").read_text()
"""Whole command lines that are wrong."""

MACHINE_FAILED = ("trace ",)
"""A target or value with one of these may end with exit code 1: a program or the disk refused."""


def targets() -> Iterator[tuple[str, list[str]]]:
    """Kind of value and words of every target."""
    kind = ""
    for line in TARGETS.splitlines():
        if line.endswith(":") and not line.startswith(" "):
            kind = line[:-1]
        elif line:
            yield kind, _words(line)


def cases(*, whole: bool) -> Iterator[list[str]]:
    """The words of every wrong command line. Unless the `whole` table is asked for, the targets of a kind
    share its values: each has a value of every class, and each value has a target.
    """
    lines: dict[str, list[list[str]]] = {}
    for kind, words in targets():
        lines.setdefault(kind, []).append(words)
    for kind, places in lines.items():
        for number, words in enumerate(places):
            for value in VALUES[kind] if whole else share(VALUES[kind], number, len(places)):
                yield [word.replace("@", value) for word in words]
    yield from (_words(line) for line in LINES.splitlines() if line)


def share(values: Sequence[str], number: int, count: int) -> Iterator[str]:
    """Of every class of values, those for target `number` of `count`."""
    classes: dict[str, list[str]] = {}
    for value in values:
        classes.setdefault(_class(value), []).append(value)
    for alike in classes.values():
        yield from alike[number::count] or [alike[number % len(alike)]]


def _class(value: str) -> str:
    """What a program has to notice of a value."""
    if not value.strip() or value == NOT_UTF8:
        return "no text"
    with contextlib.suppress(ValueError):
        return "number" if math.isfinite(float(value)) else "no finite number"
    name = Path(value).stem.rpartition("-")[2]
    if name in ("fifo", "zero", "loop", "folder", "missing"):
        return "no file"
    return "wrong file" if value.startswith("bad/") else "wrong text"


def _words(line: str) -> list[str]:
    for short, text in SHORT.items():
        line = line.replace(short, text)
    return line.split()
