"""The causes that `elbowroom diagnose` names, beside the ones that are planted in the programs of tests/zoo.

    python benchmarks/zoo.py --count 200 --seed 1 --keep DIR [--table docs/measured/zoo.md]

Runs are drawn from a grid: problem, size of the problem, length of a step, problem or repaired twin, 2 or 4
ranks, Open MPI or MPICH, alone or beside a busy core. The same seed draws the same runs; those that DIR has
are not repeated. A problem is found where its cause comes first; a twin is right where nothing is named.
Where processes share cores (more ranks than cores, or a busy core that they need), `shared-core` is true and
is not counted. What is planted, as a share of the step, comes from the program; where it does not know it,
from the steps of its twin, which runs beside it; the smaller of both where ranks share cores, as a rank with
less work leaves its core to others, and steps vary. Exit code 1: fewer than 95 % of the problems found, or
of the twins right.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import platform
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from command import Command, status

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "src"), str(ROOT / "tests")]

import zoo_programs  # noqa: E402
from elbowroom.diagnose.causes import CAUSES, LEAST  # noqa: E402
from elbowroom.errors import ElbowroomError  # noqa: E402
from elbowroom.launch.mpi import Mpi, find_mpi  # noqa: E402
from elbowroom.verbs.diagnosis import explain_profile  # noqa: E402

GOAL = 0.95
PATIENCE = 60
MPIS = ("openmpi", "mpich")
RUN_SECONDS = 1.2
BUSY = "import os\nos.sched_setaffinity(0, {core})\nwhile os.getppid() == {parent}:\n    sum(range(100000))"


class Draw(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the grid. `size`: of the problem, None where the launch line plants it."""

    problem: str
    repaired: bool
    mpi: str
    ranks: int
    beside: bool
    size: float | None
    step_ms: float

    @property
    def key(self) -> str:
        return msgspec.json.encode(self).decode()

    @property
    def shares_cores(self) -> bool:
        return self.ranks + self.beside > len(os.sched_getaffinity(0))


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What `diagnose` said: causes in its order, with their shares, the account, and what it took. `planted`:
    share of the step, None if not known; `error`: why there is no diagnosis.
    """

    draw: Draw
    commit: str
    causes: tuple[tuple[str, float], ...] = ()
    evidence: tuple[str, ...] = ()
    account: dict[str, float | None] = {}
    step_s: float | None = None
    planted: float | None = None
    seconds: float = 0.0
    load: float = 0.0
    error: str = ""

    @property
    def counted(self) -> list[str]:
        """The causes without `shared-core` where cores are shared anyway."""
        shared = self.draw.shares_cores
        planted = zoo_programs.problems()[self.draw.problem].cause
        shared &= self.draw.repaired or planted != "shared-core"
        return [cause for cause, _share in self.causes if cause != "shared-core" or not shared]

    @property
    def is_tiny(self) -> bool:
        """Whether less is planted than `diagnose` names: this run says nothing."""
        return not self.draw.repaired and self.planted is not None and self.planted < LEAST

    @property
    def right(self) -> bool:
        if self.error:
            return False
        wanted = "computation" if self.draw.repaired else zoo_programs.problems()[self.draw.problem].cause
        if self.draw.repaired:
            return not self.counted or self.counted == [wanted]
        return self.counted[:1] == [wanted]


def draws(seed: int, count: int, only: str | None) -> list[Draw]:
    """The first `count` runs of a seed, each problem about as often; of problems that can run here."""
    generator = random.Random(seed)
    rows = [row for row in zoo_programs.problems().values() if row.missing() is None]
    rows = [row for row in rows if only is None or re.search(only, row.name)]
    found: list[Draw] = []
    while rows and len(found) < count:
        for row in generator.sample(rows, len(rows)):
            size = generator.uniform(row.sizes[0], row.sizes[-1]) if row.sizes else None
            draw = Draw(
                problem=row.name,
                repaired=generator.random() < 0.5,
                mpi=generator.choice(MPIS),
                ranks=generator.choice(row.ranks),
                beside=generator.random() < 0.25,
                size=None if size is None else round(size, 3),
                step_ms=round(generator.uniform(5, 20), 1),
            )
            found.append(draw)
    return found[:count]


@contextlib.contextmanager
def busy_core(wanted: bool) -> Iterator[None]:
    """A process that computes on the last core of this process."""
    if not wanted:
        yield
        return
    code = BUSY.format(core={max(os.sched_getaffinity(0))}, parent=os.getpid())
    busy = subprocess.Popen([sys.executable, "-c", code])
    try:
        yield
    finally:
        busy.kill()
        busy.wait()


def profile_of(draw: Draw, folder: Path) -> Path:
    """Where the profile of a run is kept."""
    return folder / "profiles" / hashlib.sha256(draw.key.encode()).hexdigest()[:16]


def judged_again(one: Outcome, folder: Path) -> Outcome:
    """A run with what today's rules say of its profile."""
    profile = profile_of(one.draw, folder)
    if one.error or not profile.exists():
        return one
    explained = explain_profile(profile)
    return msgspec.structs.replace(
        one,
        causes=tuple((cause.cause, cause.share) for cause in explained.causes),
        evidence=tuple(cause.evidence for cause in explained.causes),
        account={part: share.value for part, share in explained.account.shares().items()},
    )


def run(draw: Draw, mpi: Mpi, folder: Path, wrapper: Sequence[str], commit: str) -> Outcome:
    """Diagnoses a run; a twin for the planted size runs beside it where the program does not know it."""
    problem = zoo_programs.problems()[draw.problem]
    steps = max(40, round(1e3 * RUN_SECONDS / draw.step_ms))
    more = (f"steps={steps}", f"step_ms={draw.step_ms:g}")

    def line(repaired: bool) -> tuple[list[str], dict[str, str]]:
        words = zoo_programs.launch_line(
            problem,
            mpi,
            folder,
            ranks=draw.ranks,
            repaired=repaired,
            size=draw.size,
            more=more,
            wrapper=tuple(wrapper),
        )
        return words, zoo_programs.started_with(problem, mpi, folder, repaired=repaired)

    words, environment = line(draw.repaired)
    load = os.getloadavg()[0]
    out = str(profile_of(draw, folder.parent))
    shutil.rmtree(out, ignore_errors=True)
    with busy_core(draw.beside):
        command = [
            sys.executable,
            "-m",
            "elbowroom",
            "diagnose",
            "--json",
            "--no-try",
            "-o",
            out,
            "--",
            *words,
        ]
        begin = time.perf_counter()
        done = _ran(command, environment)
        seconds = time.perf_counter() - begin
        said = _printed(done.stderr)
        twin: dict[str, Any] = {}
        if not draw.repaired and said and (said["expected"] < 0 or draw.shares_cores):
            twin = _printed(_ran(line(True)[0], line(True)[1]).stdout)
    planted = said.get("expected", -1.0)
    if twin:
        known, more = planted, max(0.0, 1 - twin["step_s"] / said["step_s"])
        planted = more if known < 0 else min(known, more)
    try:
        document = json.loads(done.stdout)
        causes = tuple((one["cause"], one["share"]) for one in document["causes"])
    except (ValueError, KeyError, TypeError):
        reason = (done.stderr or done.stdout).strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        return Outcome(draw=draw, commit=commit, seconds=seconds, load=load, error=reason[0][:300])
    return Outcome(
        draw=draw,
        commit=commit,
        causes=causes,
        evidence=tuple(one["evidence"] for one in document["causes"]),
        account=document["account"],
        step_s=document.get("step_s"),
        planted=planted if planted >= 0 else None,
        seconds=seconds,
        load=load,
    )


def _ran(command: Sequence[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """What a command printed; it is ended, and what it started, where it takes too long."""
    patient = ["timeout", "--kill-after=5", str(PATIENCE), *command]
    done = subprocess.run(patient, capture_output=True, text=True, env=environment)
    if done.returncode in (124, 137):
        return subprocess.CompletedProcess(command, done.returncode, "", f"longer than {PATIENCE} s")
    return done


def _printed(text: str) -> dict[str, Any]:
    """The line that a program of the zoo prints."""
    found = re.search(r'^\{"steps": .*\}$', text, re.MULTILINE)
    return json.loads(found[0]) if found else {}


def table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Lines of Markdown: by problem, how often its cause came first, and what the account explains."""
    head = ("problem", "planted cause", "found first", "twins right", "not explained")
    yield f"| {' | '.join(head)} |"
    yield "|" + len(head) * "---|"
    for row in zoo_programs.problems().values():
        own = [one for one in outcomes if one.draw.problem == row.name]
        reason = row.missing()
        if not own:
            yield f"| {row.name} | {row.cause} | {f'not run: {reason}' if reason else '-'} | | |"
            continue
        planted = [one for one in own if not one.draw.repaired]
        twins = [one for one in own if one.draw.repaired]
        yield (
            f"| {row.name} | {row.cause} | {share_of(planted)} | {share_of(twins)} "
            f"| {_percent([one.account.get('not_explained') for one in own])} |"
        )
    planted = [one for one in outcomes if not one.draw.repaired]
    twins = [one for one in outcomes if one.draw.repaired]
    rest = _percent([one.account.get("not_explained") for one in outcomes])
    found, right = (with_interval(sum(one.right for one in own), len(own)) for own in (planted, twins))
    yield f"| **all** | | {found} | {right} | {rest} |"


def share_of(outcomes: Sequence[Outcome]) -> str:
    return f"{sum(one.right for one in outcomes)} of {len(outcomes)}" if outcomes else "-"


def with_interval(some: int, count: int) -> str:
    """`some` of `count`, with Wilson's 95 % interval of the share."""
    z = 1.96
    if not count:
        return "-"
    share = some / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    return f"{some} of {count}: {100 * share:.0f} % ({100 * low:.0f} to {100 * high:.0f} %)"


def rates(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Lines of Markdown: by cause, how often it is named, in any place, where it is planted and where not."""
    head = ("cause", "named where planted", "named where not planted")
    yield f"| {' | '.join(head)} |"
    yield "|" + len(head) * "---|"
    problems = zoo_programs.problems()
    for test in CAUSES:
        named: dict[bool, list[bool]] = {True: [], False: []}
        for one in outcomes:
            planted = not one.draw.repaired and problems[one.draw.problem].cause == test.cause
            named[planted].append(test.cause in one.counted)
        yield (
            f"| `{test.cause}` | "
            + " | ".join(
                f"{with_interval(sum(named[planted]), len(named[planted]))}" for planted in (True, False)
            )
            + " |"
        )


def _percent(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{100 * median(known):.1f} %, at most {100 * max(known):.1f} %" if known else "-"


def misses(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """A line for each run that is not right."""
    for one in outcomes:
        if one.right:
            continue
        draw = one.draw
        size = "" if draw.size is None else f" size {draw.size:g}"
        where = f"{draw.mpi}, {draw.ranks} ranks{', beside a busy core' if draw.beside else ''}"
        named = ", ".join(f"{name} {100 * share:.0f} %" for name, share in one.causes)
        named = named or one.error or "not judged"
        twin = " repaired" if draw.repaired else ""
        yield f"{draw.problem}{twin}{size}, {draw.step_ms:g} ms, {where}: {named}"


def page(outcomes: Sequence[Outcome], command: str) -> str:
    """docs/measured/zoo.md."""
    model = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    cores = len(os.sched_getaffinity(0))
    commits = ", ".join(sorted({one.commit for one in outcomes}))
    loads = [one.load for one in outcomes]
    lines = [
        "# The zoo: planted problems and named causes",
        "",
        "Programs with one planted problem each, and their repaired twins (tests/zoo), without trials:",
        "",
        f"    {command}",
        "",
        f"{cores} cores ({model[1] if model else platform.processor()}), commits {commits}, load average "
        f"{min(loads):.1f} to {max(loads):.1f}, {time.strftime('%Y-%m-%d')}. Columns: how often the planted "
        "cause came first; how often nothing was named on a twin; what the account does not explain (median "
        "and most). Where processes share cores anyway, `shared-core` is not counted. Problems that cost "
        "less than 5 % of a step, which `diagnose` does not name, are left out. Intervals are 95 %.",
        "",
        *table(outcomes),
        "",
        "## Errors of each cause",
        "",
        "In any place of the list, of the runs above. Where it is not planted: all twins, and the problems "
        "of other causes.",
        "",
        *rates(outcomes),
        "",
        "## Runs that were not right",
        "",
        *(f"- {line}" for line in misses(outcomes)),
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = Command(
        __doc__, smoke="--count 2 --only ^late-rank-persistent$ --keep {folder} --table {folder}/z.md"
    )
    parser.add_argument("--count", type=int, default=200, help="runs to draw")
    parser.add_argument("--seed", type=int, default=1, help="another one draws other runs and sizes")
    parser.add_argument("--only", help="problems whose name this expression finds")
    parser.add_argument(
        "--keep", required=True, help="folder for results and programs; what it has is not repeated"
    )
    parser.add_argument("--table", help="write the page with the table there")
    parser.add_argument("--again", action="store_true", help="judge the kept profiles by the rules of now")
    parser.add_argument("--wrapper", default="", help="words before each program")
    chosen = parser.parse_args()
    folder = Path(chosen.keep)
    folder.mkdir(parents=True, exist_ok=True)
    journal = folder / "outcomes.jsonl"
    done: dict[str, Outcome] = {}
    if journal.exists():
        kept = [msgspec.json.decode(line, type=Outcome) for line in journal.read_text().splitlines()]
        done = {one.draw.key: one for one in kept}
    described = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty"], capture_output=True, text=True
    )
    outcomes = []
    try:
        mpis = {name: find_mpi(name) for name in MPIS if not chosen.smoke or name == "openmpi"}
        for draw in draws(chosen.seed, chosen.count, chosen.only):
            if draw.key not in done:
                if draw.mpi not in mpis:
                    continue
                done[draw.key] = run(
                    draw,
                    mpis[draw.mpi],
                    folder / "programs",
                    chosen.wrapper.split(),
                    described.stdout.strip(),
                )
                with journal.open("a", encoding="utf-8") as file:
                    file.write(msgspec.json.encode(done[draw.key]).decode() + "\n")
            one = done[draw.key]
            if chosen.again:
                one = judged_again(one, folder)
            if one.is_tiny:
                continue
            outcomes.append(one)
            for line in misses([one]):
                print(f"  not right: {line}", flush=True)
    except ElbowroomError as error:
        print(error.sentence(), file=sys.stderr)
        return error.exit_code
    print("\n".join(table(outcomes)))
    if chosen.table:
        options = f"--count {chosen.count} --seed {chosen.seed}"
        text = page(outcomes, f"python benchmarks/zoo.py {options} --keep DIR --table {chosen.table}")
        Path(chosen.table).write_text(text, encoding="utf-8")
    kinds = ([one for one in outcomes if one.draw.repaired is twin] for twin in (False, True))
    return status(chosen, any(one and sum(o.right for o in one) < GOAL * len(one) for one in kinds))


if __name__ == "__main__":
    sys.exit(main())
