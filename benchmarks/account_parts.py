"""Parts of the account, planted alone and in pairs by tests/zoo/parts.c, beside its account.

    python benchmarks/account_parts.py --keep DIR [--table docs/measured/account-parts.md]

The program measures itself how long each part takes: waits for others by when they come, by a clock that all
ranks share. So what is compared is what passed, also on a busy machine. Runs that DIR has are not repeated.
Exit code 1: a share differs by more than 5 % of the step in more than 5 % of the comparisons.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

import msgspec
from command import Command, status

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "src"), str(ROOT / "tests")]

import zoo_programs  # noqa: E402
from elbowroom.launch.mpi import find_mpi  # noqa: E402
from elbowroom.verbs.diagnosis import explain_profile  # noqa: E402

PROGRAM = "parts.c"
PARTS = ("transfer", "late_ranks", "no_progress", "collective_wait", "library", "scheduler", "io")
SIZE = 0.2
"""Planted share of a step, of each part."""
NEAR, MISSES = 0.05, 0.05
PATIENCE = 60


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One run: the shares that the program measured, and the account's; `error`: why there are none."""

    mpi: str
    ranks: int
    parts: tuple[str, ...]
    planted: dict[str, float] = {}
    account: dict[str, float] = {}
    error: str = ""

    @property
    def key(self) -> str:
        return f"{self.mpi}-{self.ranks}-{'-'.join(self.parts)}"

    def difference(self, part: str) -> float:
        """Of the account and what was measured, as a share of the step."""
        return self.account[part] - self.planted[part]


def cases(mpis: Sequence[str], ranks: int) -> Iterator[Case]:
    """Each part alone, then each pair, for each MPI."""
    for chosen in itertools.chain(itertools.combinations(PARTS, 1), itertools.combinations(PARTS, 2)):
        for mpi in mpis:
            yield Case(mpi=mpi, ranks=ranks, parts=chosen)


def run(case: Case, folder: Path, steps: int, wrapper: Sequence[str]) -> Case:
    """The case, profiled and accounted for."""
    mpi = find_mpi(case.mpi)
    problem = zoo_programs.Problem(
        name="parts", program=PROGRAM, arguments=tuple(f"{part}={SIZE}" for part in case.parts), cause=""
    )
    words = zoo_programs.launch_line(
        problem,
        mpi,
        folder / "programs",
        ranks=case.ranks,
        repaired=False,
        more=(f"steps={steps}", "step_ms=10"),
        wrapper=tuple(wrapper),
    )
    profile = folder / "parts" / case.key
    shutil.rmtree(profile, ignore_errors=True)
    profile.parent.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "elbowroom", "profile", "record", "-o", str(profile), "--"]
    environment = zoo_programs.started_with(problem, mpi, folder / "programs", repaired=False)
    patient = ["timeout", "--kill-after=5", str(PATIENCE), *command, *words]
    done = subprocess.run(patient, capture_output=True, text=True, env=environment)
    line = next((line for line in done.stdout.splitlines() if line.startswith('{"steps"')), None)
    if done.returncode or line is None:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        return msgspec.structs.replace(case, error=last[0])
    return again(msgspec.structs.replace(case, planted=json.loads(line)["planted"]), folder)


def again(case: Case, folder: Path) -> Case:
    """The case with what today's rules say of its profile."""
    if case.error:
        return case
    shares = explain_profile(folder / "parts" / case.key).account.shares()
    return msgspec.structs.replace(case, account={part: shares[part].value for part in PARTS})


def table(done: Sequence[Case]) -> Iterator[str]:
    """Lines of Markdown: by part, alone and beside each other one."""
    yield "| part | alone: planted, account | in pairs: difference (median, most) | within 5 % of the step |"
    yield "|---|---|---|---|"
    for part in PARTS:
        own = [case for case in done if part in case.parts and not case.error]
        alone = "; ".join(
            f"{case.mpi} {100 * case.planted[part]:.1f} %, {100 * case.account[part]:.1f} %"
            for case in own
            if len(case.parts) == 1
        )
        pairs = [abs(case.difference(part)) for case in own if len(case.parts) == 2]
        shown = f"{100 * median(pairs):.1f} %, {100 * max(pairs):.1f} %" if pairs else "-"
        near = sum(abs(case.difference(part)) <= NEAR for case in own)
        yield f"| `{part}` | {alone or '-'} | {shown} | {near} of {len(own)} |"


def misses(done: Sequence[Case]) -> list[str]:
    """A line for each planted part that the account does not recover."""
    return [
        f"{case.key}: {part} {100 * case.planted[part]:.1f} %, account {100 * case.account[part]:.1f} %"
        for case in done
        for part in case.parts
        if not case.error and abs(case.difference(part)) > NEAR
    ] + [f"{case.key}: {case.error}" for case in done if case.error]


def page(done: Sequence[Case], command: str, loads: Mapping[str, float]) -> str:
    """docs/measured/account-parts.md."""
    lines = [
        "# Planted and recovered parts of the account",
        "",
        "Each part of the account and each pair, planted at about 20 % of a step of 10 ms by "
        "tests/zoo/parts.c, which measures itself how long they take; 2 ranks, profiled once each:",
        "",
        f"    {command}",
        "",
        "The machine is that of [two-core-vm.md](two-core-vm.md); load average "
        f"{loads['first']:.1f} to {loads['last']:.1f}, "
        f"{time.strftime('%Y-%m-%d')}.",
        "",
        *table(done),
        "",
        "## Further than 5 % of the step",
        "",
        *(f"- {line}" for line in misses(done) or ["none"]),
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = Command(__doc__, smoke="--only ^openmpi-2-io$ --steps 60 --keep {folder}")
    parser.add_argument("--only", default="", help="cases whose name this expression finds")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--keep", required=True, type=Path, help="folder for results and programs")
    parser.add_argument("--again", action="store_true", help="judge the kept profiles by the rules of now")
    parser.add_argument("--table", type=Path, help="write the page with the table there")
    parser.add_argument("--wrapper", default="", help="words before each program")
    chosen = parser.parse_args()
    chosen.keep.mkdir(parents=True, exist_ok=True)
    journal = chosen.keep / "parts.jsonl"
    kept = journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []
    known = {case.key: case for case in (msgspec.json.decode(line, type=Case) for line in kept)}
    done, first = [], os.getloadavg()[0]
    for case in cases(("openmpi", "mpich"), chosen.ranks):
        if chosen.only and re.search(chosen.only, case.key) is None:
            continue
        if case.key not in known:
            known[case.key] = run(case, chosen.keep, chosen.steps, chosen.wrapper.split())
            with journal.open("a", encoding="utf-8") as file:
                file.write(msgspec.json.encode(known[case.key]).decode() + "\n")
        done.append(again(known[case.key], chosen.keep) if chosen.again else known[case.key])
    print("\n".join([*table(done), "", *misses(done)]))
    if chosen.table:
        command = f"python benchmarks/account_parts.py --keep DIR --table {chosen.table}"
        text = page(done, command, {"first": first, "last": os.getloadavg()[0]})
        chosen.table.write_text(text, encoding="utf-8")
    planted = sum(len(case.parts) for case in done)
    return status(chosen, len(misses(done)) > MISSES * planted)


if __name__ == "__main__":
    sys.exit(main())
