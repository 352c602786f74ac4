"""How often the intervals of `elbowroom trace overlap` hold: planted slowdowns, placebos and confounders.

python benchmarks/trace_estimate.py [--plantings 500] [--placebos 1000] [--truths 40] [--comparisons 200]
                                    [--patterns 60] [--seed 52] [--store FILE.jsonl] [FILE ...]

Slowdowns of 0 to 40 % are planted into generated traces, or into the FILEs (of any format that is read)
after their communication was moved to random places of each step. They are the same for all that is
covered, or (`--patterns`) differ: between classes, places or instances, or by how long these are, the time in
the step, the part that is covered, or the message; then the truth is the mean over the shared time.
Comparisons are of two halves of such a trace, one of them with 10 % more slowdown, or with none more. Bars:
intervals hold in 93 to 97 % (or within twice the standard error of that), their values are wrong by 2 points
at most on average, an effect is claimed on at most 5 % of the placebos, wrong claims are at most 5 % of the
traces of each kind of confounder, and the bound is at most twice the cost in half of the generated traces.
Exit code 1 if a bar is missed. Patterns have no bar.

`--store`: answers are added to this file, and those that it has already are not asked again. Constants of the
estimator were chosen with seeds up to 51; others test it.
"""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import json
import math
import multiprocessing
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from command import Command, status

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "src"), str(ROOT / "tests")]

from confounded_traces import KINDS, STRENGTHS, Truth, make_events  # noqa: E402
from elbowroom.errors import UsageError  # noqa: E402
from elbowroom.stats.interval import Interval  # noqa: E402
from elbowroom.trace.overlap.analysis import analyse  # noqa: E402
from elbowroom.trace.overlap.chrome import read_json  # noqa: E402
from elbowroom.trace.overlap.comparison import compare_overlaps  # noqa: E402
from elbowroom.trace.overlap.events import Events  # noqa: E402
from elbowroom.trace.overlap.formats import traces_in  # noqa: E402
from planted_traces import PATTERNS, halves, plant, shift_communication  # noqa: E402

MORE = 1.1
"""The slowdown of the second half over that of the first one."""
Test = Literal["planted", "patterned", "placebo", "confounded", "compared", "compared placebo"]


@dataclass(frozen=True)
class Case:
    """A trace: from a `file` ("": generated), with a `slowdown`, a `seed`, and a confounder (its number of
    KINDS, -1: none; of "patterned": that of PATTERNS) of a strength.
    """

    test: Test
    file: str
    slowdown: float
    seed: tuple[int, int]
    kind: int = -1
    strength: float = 0.0

    @property
    def key(self) -> str:
        """What a store knows it by."""
        return json.dumps([self.test, self.file, self.seed, self.slowdown, self.kind, self.strength])


@dataclass(frozen=True)
class Answer:
    """The grade, the truth and its interval (NaN: none), and the bound over the true cost (NaN: no cost). Of
    a comparison these are changes of the cost, parts of the hidden time.
    """

    grade: str
    truth: float
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    bound: float = math.nan

    @property
    def given(self) -> bool:
        """Whether there is an interval."""
        return self.grade == "measured"

    @property
    def wrong(self) -> bool:
        """Whether there is an interval that does not hold the truth."""
        return self.given and not self.low <= self.truth <= self.high


@lru_cache(maxsize=16)
def read(file: str) -> Events:
    """The events of a file of one rank."""
    with tempfile.TemporaryDirectory() as scratch:
        found = traces_in(Path(file), Path(scratch))[0]
        if found.format == "json":
            return read_json(found.place)
        with tempfile.TemporaryFile() as store:
            events: Events = importlib.import_module(found.format).read(found.place, store).whole()
        return events


def answer(case: Case) -> Answer:
    """What the analysis says of a case."""
    random = np.random.default_rng(case.seed)
    if case.test.startswith("compared"):
        return compared(case, random)
    right = case.slowdown
    if case.file or case.test == "patterned":
        events, _ = make_events(truth(case, random, 1.0)) if not case.file else (read(case.file), 0.0)
        events = shift_communication(events, random) if case.file else events
        pattern = PATTERNS[case.kind] if case.test == "patterned" else "alike"
        events, cost, right = plant(events, case.slowdown, pattern, case.seed)
    else:
        events, cost = make_events(truth(case, random, case.slowdown))
    found = analyse(events, [case.file or "generated"]).estimate
    bound = found.at_most_s / cost if cost > 0 else math.nan
    return answered(found.grade, right, found.slowdown, bound)


def answered(grade: str, value: float, interval: Interval | None, bound: float = math.nan) -> Answer:
    """An interval beside the truth."""
    if interval is None:
        return Answer(grade, value, bound=bound)
    return Answer(grade, value, interval.value, interval.low, interval.high, bound)


def truth(case: Case, random: np.random.Generator, slowdown: float) -> Truth:
    """What to generate."""
    return Truth(
        seed=int(random.integers(1 << 31)),
        steps=int(random.integers(3, 7)),
        ranks=int(random.integers(1, 3)),
        jitter=float(random.choice([0.3, 0.5, 0.8])),
        slowdown=slowdown,
        confounder=KINDS[case.kind] if case.test == "confounded" else "none",
        strength=case.strength,
    )


def compared(case: Case, random: np.random.Generator) -> Answer:
    """The change of the cost of a step from one half of a trace to the other, a part of the hidden time."""
    more = 1.0 if case.test == "compared placebo" else MORE
    if case.file:
        parts = halves(shift_communication(read(case.file), random))
        made = [plant(one, case.slowdown * by)[:2] for one, by in zip(parts, (1.0, more), strict=True)]
    else:
        first = dataclasses.replace(truth(case, random, case.slowdown), ranks=1, noise=0.02)
        later = dataclasses.replace(first, seed=first.seed + 1, slowdown=case.slowdown * more)
        made = [make_events(one) for one in (first, later)]
    try:
        documents = [analyse(events, ["half"]) for events, _ in made]
    except UsageError:
        return Answer("no halves", math.nan)
    costs = [cost / max(one.steps or 1, 1) for one, (_, cost) in zip(documents, made, strict=True)]
    hidden = documents[0].hidden_s / max(documents[0].steps or 1, 1)
    change = compare_overlaps(*documents).cost_change
    right = (costs[1] - costs[0]) / hidden
    if change is None:
        return Answer("bounded", right)
    ends = (change.value / hidden, change.low / hidden, change.high / hidden)
    return answered("measured", right, Interval(**dict(zip(("value", "low", "high"), ends, strict=True))))


def main() -> int:
    """Runs all of it and prints a table."""
    parser = Command(
        __doc__, smoke="--plantings 4 --placebos 2 --truths 1 --comparisons 2 --patterns 1 --jobs 1"
    )
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--plantings", type=int, default=500)
    parser.add_argument("--placebos", type=int, default=1000)
    parser.add_argument("--truths", type=int, default=40, help="traces of each confounder and strength")
    parser.add_argument("--comparisons", type=int, default=200)
    parser.add_argument("--patterns", type=int, default=60, help="plantings of each pattern")
    parser.add_argument("--seed", type=int, default=52)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--store", type=Path, help="a file of answers, to which new ones are added")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    cases = cases_of(asked, asked.files or [""])
    pairs = list(answers(cases, asked.store, asked.jobs))
    result = {
        "plantings": of_plantings(pairs),
        "patterns": of_patterns(pairs),
        "placebos": of_placebos(pairs),
        "confounders": of_confounders(pairs),
        "comparisons": of_comparisons(pairs),
    }
    print(json.dumps(result) if asked.json else table(result))
    return status(asked, missed(result, generated=not asked.files))


def cases_of(asked: Any, files: Sequence[str]) -> list[Case]:
    """All cases, the files in turn."""
    cases = [_drawn("planted", files, asked.seed, at) for at in range(asked.plantings)]
    cases += [
        Case("placebo", files[at % len(files)], 1.0, (asked.seed, 100_000 + at))
        for at in range(asked.placebos)
    ]
    cases += [
        _drawn("patterned", files, asked.seed, 400_000 + at, kind)
        for at in range(asked.patterns)
        for kind in range(1, len(PATTERNS))
    ]
    tests: tuple[Test, Test] = ("compared", "compared placebo")
    cases += [
        Case(tests[at % 2], files[at // 2 % len(files)], 1.2, (asked.seed, 300_000 + at))
        for at in range(asked.comparisons)
    ]
    cases += [
        Case("confounded", "", 1.0 + 0.2 * (at % 2), (asked.seed, 200_000 + 1000 * row + at), kind, strength)
        for row, (kind, strength) in enumerate(itertools.product(range(len(KINDS)), STRENGTHS))
        for at in range(asked.truths)
    ]
    return cases


def _drawn(test: Test, files: Sequence[str], seed: int, at: int, kind: int = -1) -> Case:
    """A case whose slowdown depends on its number only, so that a longer run has those of a shorter one."""
    slowdown = float(np.random.default_rng([seed, at, kind + 1]).uniform(1.0, 1.4))
    return Case(test, files[at % len(files)], slowdown, (seed, at), kind)


def answers(cases: Sequence[Case], store: Path | None, jobs: int) -> Iterator[tuple[Case, Answer]]:
    """The answers, from the store where it has them."""
    known: dict[str, Answer] = {}
    if store is not None and store.exists():
        for line in store.read_text().splitlines():
            key, values = json.loads(line)
            known[key] = Answer(*values)
    yield from ((case, known[case.key]) for case in cases if case.key in known)
    rest = [case for case in cases if case.key not in known]
    with multiprocessing.Pool(jobs) as pool:
        for case, found in zip(rest, pool.imap(answer, rest, chunksize=8 if jobs > 1 else 1), strict=True):
            if store is not None:
                with store.open("a") as file:
                    file.write(json.dumps([case.key, dataclasses.astuple(found)]) + "\n")
            yield case, found


Pairs = Sequence[tuple[Case, Answer]]


def of_plantings(pairs: Pairs) -> dict[str, Any]:
    """How often intervals hold, errors, and bounds: of all, and of each trace."""
    planted = [(case.file, found) for case, found in pairs if case.test == "planted"]
    result: dict[str, Any] = _held([found for _, found in planted])
    bounds = [found.bound for _, found in planted if not math.isnan(found.bound)]
    result["bound"] = float(np.median(bounds)) if bounds else math.nan
    result["files"] = {
        Path(file).name: _held([found for name, found in planted if name == file])
        for file in dict.fromkeys(name for name, _ in planted)
        if file
    }
    return result


def of_patterns(pairs: Pairs) -> dict[str, dict[str, float]]:
    """How often intervals hold where the slowdown differs."""
    found: dict[str, list[Answer]] = {}
    for case, one in pairs:
        if case.test == "patterned":
            found.setdefault(PATTERNS[case.kind], []).append(one)
    return {pattern: _held(ones) for pattern, ones in found.items()}


def _held(found: Sequence[Answer]) -> dict[str, float]:
    given = [one for one in found if one.given]
    errors = [one.value - one.truth for one in given]
    if not given:
        return {"traces": len(found), "intervals": 0}
    return {
        "traces": len(found),
        "intervals": len(given),
        "held": float(np.mean([not one.wrong for one in given])),
        "above": float(np.mean([one.low > one.truth for one in given])),
        "below": float(np.mean([one.high < one.truth for one in given])),
        "error": float(np.mean(errors)),
        "distance": float(np.mean(np.abs(errors))),
        "width": float(np.median([one.high - one.low for one in given])),
    }


def of_placebos(pairs: Pairs) -> dict[str, int]:
    """How often an effect is claimed where there is none."""
    found = [one for case, one in pairs if case.test == "placebo"]
    return {
        "traces": len(found),
        "intervals": sum(one.given for one in found),
        "claims": sum(one.given and one.low > 1 for one in found),
        "gains": sum(one.given and one.high < 1 for one in found),
    }


def of_confounders(pairs: Pairs) -> dict[str, dict[str, float]]:
    """Wrong intervals of each kind at each strength."""
    result: dict[str, dict[str, float]] = {}
    for case, found in pairs:
        if case.test == "confounded":
            row = result.setdefault(f"{KINDS[case.kind]} {case.strength:.0%}", dict.fromkeys(_ROW, 0))
            row["traces"] += 1
            row["intervals"] += found.given
            row["wrong"] += found.wrong
            row["confounded"] += found.grade == "confounded"
    return result


_ROW = ("traces", "intervals", "confounded", "wrong")


def of_comparisons(pairs: Pairs) -> dict[str, dict[str, float]]:
    """How often the interval of the change holds; `found`: how often it excludes no change."""
    result = {}
    for test in ("compared placebo", "compared"):
        found = [one for case, one in pairs if case.test == test]
        if found:
            claims = sum(one.given and not one.low <= 0 <= one.high for one in found)
            result[test] = {**_held(found), "found": claims}
    return result


def missed(result: dict[str, Any], *, generated: bool) -> bool:
    """Whether a bar is missed."""
    planted, placebos = result["plantings"], result["placebos"]
    kinds: dict[str, list[float]] = {}
    for name, row in result["confounders"].items():
        of_kind = kinds.setdefault(name.split()[0], [0, 0])
        of_kind[0] += row["wrong"]
        of_kind[1] += row["traces"]
    return (
        _outside(planted)
        or planted.get("distance", 0) > 0.02
        or (generated and planted["bound"] > 2)
        or placebos["claims"] > 0.05 * placebos["traces"]
        or any(wrong > 0.05 * traces for wrong, traces in kinds.values())
        or any(_outside(one, most=1.0) for one in result["comparisons"].values())
    )


def _outside(row: dict[str, Any], most: float = 0.97) -> bool:
    if not row.get("intervals"):
        return False
    chance = 2 * math.sqrt(0.95 * 0.05 / row["intervals"])
    return not min(0.93, 0.95 - chance) <= row["held"] <= max(most, 0.95 + chance)


def table(result: dict[str, Any]) -> str:
    """All of it as text."""
    planted, placebos = result["plantings"], result["placebos"]
    lines = [f"planted 0 to 40 %: {_row(planted)}", f"  bound over cost, median: {planted['bound']:.2f}"]
    lines += [f"  {name[:40]:40} {_row(row)}" for name, row in planted["files"].items()]
    lines += [f"  differs by {name:27} {_row(row)}" for name, row in result["patterns"].items()]
    lines += [
        f"effect claimed on {placebos['claims']} of {placebos['traces']} placebos ({placebos['intervals']} "
        f"intervals; a gain on {placebos['gains']})"
    ]
    lines += [f"{name}: {_row(row)}; a change is found in {row['found']}"
              for name, row in result["comparisons"].items()]  # fmt: skip
    lines += ["confounder        traces  intervals  confounded  wrong"]
    lines += [
        f"{name:16}  {row['traces']:6}  {row['intervals']:9}  {row['confounded']:10}  {row['wrong']:5}"
        for name, row in result["confounders"].items()
    ]
    return "\n".join(lines)


def _row(row: dict[str, Any]) -> str:
    text = f"{row['intervals']} intervals of {row['traces']}"
    if not row["intervals"]:
        return text
    return (
        f"{text}, {row['held']:.1%} hold ({row['above']:.1%} above, {row['below']:.1%} below); error "
        f"{row['error']:+.4f}, distance {row['distance']:.4f}, width {row['width']:.3f}"
    )


if __name__ == "__main__":
    sys.exit(main())
