"""Checking an advice with the user's own program: run in both configurations, in pairs, and timed.

Each pair is one repetition; which of the two is first is random in every other one and the other way round in
the next (ABBA). What was timed is journalled line by line, so that a check that was stopped can go on.
"""

from __future__ import annotations

import contextlib
import math
import random
import re
import shlex
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from elbowroom.advise.advice import ADVICE_FORMAT, Advice
from elbowroom.advise.job import AXES, Setup
from elbowroom.advise.setups import comm_socket, differing
from elbowroom.advise.verification import Column, Compared, compare, compared_with, steps_of_times
from elbowroom.errors import MachineError, UsageError
from elbowroom.files import disk_error
from elbowroom.launch.processes import Finished, run_program
from elbowroom.measure.campaign import Stopped
from elbowroom.measure.manifest import Tell
from elbowroom.measure.progress import Progress
from elbowroom.models.document import Document
from elbowroom.signals import ends_as_interrupt
from elbowroom.store.folder import refuse_existing
from elbowroom.store.journal import Format, Lines

ADVICE, JOURNAL = "advice.json", "times.jsonl"
FIRST_GUESS = 10.0
"""Seconds of one run of the program, until the first has ended."""


class Timed(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the journal: a run of the program in the present (0) or the other (1) configuration;
    `seconds` is what counts, `wall_s` the wall time.
    """

    repetition: int
    which: Annotated[int, msgspec.Meta(ge=0, le=1)]
    seconds: float
    wall_s: float


class _Runs(Format[Timed, tuple[int, int]]):
    """The lines of a journal of times: one for each run of the program."""

    def key(self, line: Timed) -> tuple[int, int]:
        """Repetition and configuration."""
        return line.repetition, line.which

    def name(self, line: Timed) -> str:
        """Which run of the program."""
        return f"run {line.repetition} of the {('present', 'advised')[line.which]} configuration"


_RUNS = _Runs(Timed, header=False)


def commands(advice: Advice, document: Document) -> tuple[list[str], list[str]]:
    """The words of the program's command in both configurations.

    UsageError for names in braces that are no axis, and where the command does not say what differs.
    """
    command = advice.job.verify.command
    assert command is not None
    try:
        named = {name for _, name, _, _ in string.Formatter().parse(command) if name is not None}
    except ValueError as error:
        raise UsageError(
            f"has braces that do not close ({error})",
            field="verify.command",
            value=command,
            hint="write {{ for {",
        ) from error
    for name in named - set(AXES):
        raise UsageError(
            f"names {{{name}}}, which is no choice of a job",
            field="verify.command",
            value=command,
            hint=f"known: {', '.join(AXES)}",
        )
    other = compared_with(advice).setup
    unsaid = [axis for axis in differing(other, advice.now.setup) if axis not in named]
    if unsaid:
        raise UsageError(
            f"does not say {', '.join(f'{{{axis}}}' for axis in unsaid)}, which the advice changes",
            field="verify.command",
            value=command,
            hint="put it where the program takes that value",
        )
    filled = [
        [word.format(**_words(advice, setup, document)) for word in shlex.split(command)]
        for setup in (advice.now.setup, other)
    ]
    return filled[0], filled[1]


def _words(advice: Advice, setup: Setup, document: Document) -> dict[str, str]:
    """A setup as a command line says it: nodes by the operating system's numbers, sizes in bytes, 1 or 0."""
    nodes = document.calibration.nodes or tuple(range(advice.machine.nodes))
    node_other = setup.comp_node if setup.comp_node_other is None else setup.comp_node_other
    words = {axis: str(getattr(setup, axis)) for axis in AXES}
    words |= {
        "comp_node": str(nodes[setup.comp_node]),
        "comp_node_other": str(nodes[node_other]),
        "comm_node": str(nodes[setup.comm_node]),
        "comm_socket": str(comm_socket(setup, advice.machine)),
        "size": str(document.calibration.size if setup.size is None else setup.size),
        "overlap": str(int(setup.overlap)),
    }
    return words


def time_program(
    advice: Advice,
    document: Document,
    out: Path,
    *,
    repetitions: int,
    seed: int,
    patience: float | None,
    tell: Tell,
    again: bool = False,
) -> Compared:
    """Runs the program in both configurations that many times, into a new folder, or `again` into one that
    was begun.
    """
    words = commands(advice, document)
    with contextlib.closing(_opened(advice, out, again)) as journal:
        done = journal.read()
        left = [item for item in order(repetitions, seed) if item not in journal.done]
        guess = sum(one.wall_s for one in done) / len(done) if done else FIRST_GUESS
        try:
            with ends_as_interrupt(), Progress(len(left), guess * len(left), tell, "timing") as bar:
                for repetition, which in left:
                    finished = run_program(words[which], patience)
                    one = Timed(
                        repetition=repetition,
                        which=which,
                        seconds=_seconds(advice, finished),
                        wall_s=finished.wall_s,
                    )
                    journal.append(one)
                    done.append(one)
                    bar.step(("now", "advised")[which])
        except KeyboardInterrupt as interrupt:
            raise Stopped(
                "stopped; what was timed is kept",
                field="verify",
                value=str(out),
                hint="continue with --resume instead of --run",
            ) from interrupt
    totals = steps_of_times([_column(done, which) for which in (0, 1)], seed)
    return compare(advice, totals, repetitions, source=str(out))


def _opened(advice: Advice, out: Path, again: bool) -> Lines[Timed, tuple[int, int]]:
    """The journal of a new folder, or of one that was begun for the same advice, locked."""
    if again:
        _same(advice, out)
        return Lines(out / JOURNAL, _RUNS, create=True)
    refuse_existing(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(error, out, "out") from error
    journal = Lines(out / JOURNAL, _RUNS, create=True)
    try:
        ADVICE_FORMAT.write(out / ADVICE, advice, own=True)
    except BaseException:
        journal.close()
        raise
    return journal


def _same(advice: Advice, out: Path) -> None:
    """Refuses to go on with a check of something else."""
    hint = "start anew: --run RUN"
    stored = msgspec.structs.replace(ADVICE_FORMAT, name="resume", hint=hint).read(out / ADVICE)
    both = [(item.job, item.now.setup, compared_with(item).setup) for item in (stored, advice)]
    if both[0] != both[1]:
        raise UsageError(
            "was started for another job or advice",
            field="resume",
            value=str(out),
            hint=hint,
        )


def order(repetitions: int, seed: int) -> list[tuple[int, int]]:
    """(repetition, configuration) in the order in which they are run."""
    rng, first, turns = random.Random(seed), 0, []
    for repetition in range(repetitions):
        first = rng.randrange(2) if repetition % 2 == 0 else 1 - first
        turns += [(repetition, first), (repetition, 1 - first)]
    return turns


def _column(done: Sequence[Timed], which: int) -> Column:
    chosen = [one for one in done if one.which == which]
    return Column([one.seconds for one in chosen], [one.repetition for one in chosen])


def _seconds(advice: Advice, finished: Finished) -> float:
    """The wall time, or the number that the job's expression finds last in the output."""
    pattern = advice.job.verify.number
    if pattern is None:
        return finished.wall_s
    matches = re.findall(pattern, finished.stdout)
    try:
        value = float(matches[-1] if isinstance(matches[-1], str) else matches[-1][0])
    except (IndexError, ValueError) as error:
        raise MachineError(
            f"finds no number in the program's output: {finished.stdout.strip()[-200:] or 'nothing'}",
            field="verify.number",
            value=pattern,
            hint="fix the expression, with the number in its group",
        ) from error
    if not (value > 0 and math.isfinite(value)):
        raise MachineError(
            "is not a time of a step", field="verify.number", value=value, hint="let it find seconds above 0"
        )
    return value
