"""The cache model beside valgrind's simulators, on the same addresses (core/caches/check), for tests and
benchmarks/caches.py. The program is built once for its sources and kept.
"""

from __future__ import annotations

import fcntl
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from elbowroom.launch import native

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "core" / "caches"
DEFAULT_ROUNDS = 4
"""The last is counted: two levels are in their steady state after two."""


class Compared(NamedTuple):
    """Misses of one cache as valgrind and as the model counts them; `what` is a case, or `all accesses`."""

    what: str
    cache: str
    valgrind: int
    model: int

    @property
    def difference(self) -> float:
        """(model - valgrind) / valgrind; 0 where neither misses."""
        if self.valgrind == self.model:
            return 0.0
        return (self.model - self.valgrind) / self.valgrind if self.valgrind else float("inf")


def missing() -> str:
    """The first tool that is needed and that is not there; empty when all are."""
    needed = ("valgrind", "cmake", "ninja", "c++")
    return next((tool for tool in needed if not shutil.which(tool)), "")


def program() -> Path:
    """The compiled check."""
    files = sorted(path for path in SOURCES.rglob("*") if path.is_file())
    key = native.source_key(ROOT, files, [native.compiler_identity()])
    folder = native.cache_folder().parent / f"caches-{key}"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "caches.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "cache_pattern").exists():
            _run(["cmake", "-S", str(SOURCES), "-B", str(folder), "-G", "Ninja"])
            _run(["cmake", "--build", str(folder)])
    return folder / "cache_pattern"


def messages(d1: str, ll: str, cases: Sequence[str], rounds: int = DEFAULT_ROUNDS) -> list[Compared]:
    """One message of each case in the steady state, by callgrind and by the model's closed form."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind"
        options = [
            "--tool=callgrind",
            "--cache-sim=yes",
            "--toggle-collect=counted_message",
            "--dump-after=case_done",
            f"--callgrind-out-file={out}",
        ]
        addresses = _valgrind(d1, ll, options, cases, rounds)
        counted = [_callgrind_misses(Path(f"{out}.{number}")) for number in range(1, len(cases) + 1)]
    modelled = _model(d1, ll, cases, rounds, addresses)[:-1]
    return [
        Compared(case, cache, valgrind[which], model[which])
        for case, valgrind, model in zip(cases, counted, modelled, strict=True)
        for which, cache in enumerate(("D1", "LL"))
    ]


def all_accesses(d1: str, ll: str, cases: Sequence[str], rounds: int = DEFAULT_ROUNDS) -> list[Compared]:
    """All accesses of all rounds, caches empty at first, by cachegrind less what the program misses that
    performs none, and by following every access.
    """
    idle = _cachegrind_misses(d1, ll, cases, 0)[0]
    counted, addresses = _cachegrind_misses(d1, ll, cases, rounds)
    model = _model(d1, ll, cases, rounds, addresses)[-1]
    return [
        Compared("all accesses", cache, counted[which] - idle[which], model[which])
        for which, cache in enumerate(("D1", "LL"))
    ]


def _cachegrind_misses(d1: str, ll: str, cases: Sequence[str], rounds: int) -> tuple[tuple[int, int], str]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "cachegrind"
        options = ["--tool=cachegrind", "--cache-sim=yes", f"--cachegrind-out-file={out}"]
        addresses = _valgrind(d1, ll, options, cases, rounds)
        return _misses(out.read_text(), "summary"), addresses


def _callgrind_misses(file: Path) -> tuple[int, int]:
    return _misses(file.read_text(), "totals")


def _misses(text: str, line: str) -> tuple[int, int]:
    """D1 and LL data misses of a line of totals; zeros at its end are left out by callgrind."""
    events = re.search(r"^events: (.*)$", text, re.MULTILINE)
    totals = re.search(rf"^{line}: (.*)$", text, re.MULTILINE)
    assert events is not None, text[:2000]
    assert totals is not None, text[:2000]
    values = [int(word) for word in totals[1].split()]
    told = dict(zip(events[1].split(), values, strict=False))
    return told.get("D1mr", 0) + told.get("D1mw", 0), told.get("DLmr", 0) + told.get("DLmw", 0)


def _valgrind(d1: str, ll: str, options: Sequence[str], cases: Sequence[str], rounds: int) -> str:
    caches = [f"--D1={d1}", f"--LL={ll}"]
    return _run(["valgrind", "-q", *caches, *options, str(program()), "run", str(rounds), *cases])


def _model(d1: str, ll: str, cases: Sequence[str], rounds: int, addresses: str) -> list[tuple[int, int]]:
    told = _run([str(program()), "model", d1, ll, str(rounds), *cases], addresses)
    return [(int(first), int(second)) for first, second in (line.split() for line in told.splitlines())]


def _run(command: list[str], text: str = "") -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(done.stdout[-4000:] + done.stderr[-4000:])
    return done.stdout
