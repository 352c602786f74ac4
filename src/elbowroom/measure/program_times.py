"""Checking an advice with the user's own program: run in both configurations, in pairs, and timed.

Each pair is one repetition; which of the two is first is random in every other one and the other way round in
the next (ABBA).
"""

from __future__ import annotations

import contextlib
import math
import shlex
import statistics
import string
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec

from elbowroom.advise.advice import ADVICE_FORMAT, Advice
from elbowroom.advise.job import AXES, Setup
from elbowroom.advise.setups import comm_socket, differing
from elbowroom.advise.verification import Compared, RepeatedValues, compare, compared_with, steps_of_times
from elbowroom.errors import MachineError, UsageError
from elbowroom.launch.processes import Finished, run_program
from elbowroom.measure.manifest import Tell
from elbowroom.measure.timed_commands import interleaved, last_number, open_times, printed, time_commands
from elbowroom.models.document import Document
from elbowroom.signals import Stopped
from elbowroom.store.journal import Format

ADVICE = "advice.json"


class Timed(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the journal: a run of the program in the present (0) or the other (1) configuration;
    `seconds` is what counts, `wall_s` the wall time.
    """

    repetition: int
    which: Annotated[int, msgspec.Meta(ge=0, le=1)]
    seconds: float
    wall_s: float


class _TimedRuns(Format[Timed, tuple[int, int]]):
    """The lines of a journal of times: one for each run of the program."""

    def key(self, line: Timed) -> tuple[int, int]:
        """Repetition and configuration."""
        return line.repetition, line.which

    def name(self, line: Timed) -> str:
        """Which run of the program."""
        return f"run {line.repetition} of the {('present', 'advised')[line.which]} configuration"


_RUNS = _TimedRuns(Timed, header=False)


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
            f"names {{{name}}}, which is not a choice of a job",
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

    def run(turn: tuple[int, int]) -> Timed:
        finished = run_program(words[turn[1]], patience)
        seconds = _seconds(advice, finished)
        return Timed(repetition=turn[0], which=turn[1], seconds=seconds, wall_s=finished.wall_s)

    def write(folder: Path) -> None:
        ADVICE_FORMAT.write(folder / ADVICE, advice, own=True)

    check = partial(_same, advice) if again else None
    stopped = Stopped(
        "stopped; what was timed is kept",
        field="verify",
        value=str(out),
        hint="continue with --resume instead of --run-out",
    )
    # Of two arms the advised one first: which one begins is as it always was for a seed.
    turns = list(interleaved((1, 0), repetitions, seed, mirrored=True))
    with contextlib.closing(open_times(out, _RUNS, write, check)) as journal:
        done = time_commands(
            turns,
            run,
            journal,
            lambda turn: turn,
            tell=tell,
            stopped=stopped,
            doing="timing",
            known=_known,
        )
    totals = steps_of_times([_column(done, which) for which in (0, 1)], seed)
    return compare(advice, totals, repetitions, source=str(out))


def _known(lines: Sequence[Timed]) -> str:
    """What both configurations take so far."""
    times = [[one.seconds for one in lines if one.which == which] for which in (0, 1)]
    if not all(times):
        return ""
    now, advised = map(statistics.median, times)
    return f"now {now:.3g} s, advised {advised:.3g} s so far"


def _same(advice: Advice, out: Path) -> None:
    """Refuses to go on with a check of something else."""
    hint = "start anew: --run-out RUN"
    stored = msgspec.structs.replace(ADVICE_FORMAT, name="resume", hint=hint).read(out / ADVICE)
    both = [(item.job, item.now.setup, compared_with(item).setup) for item in (stored, advice)]
    if both[0] != both[1]:
        raise UsageError(
            "was started for another job or advice",
            field="resume",
            value=str(out),
            hint=hint,
        )


def _column(done: Sequence[Timed], which: int) -> RepeatedValues:
    chosen = [one for one in done if one.which == which]
    return RepeatedValues([one.seconds for one in chosen], [one.repetition for one in chosen])


def _seconds(advice: Advice, finished: Finished) -> float:
    """The wall time, or the number that the job's expression finds last in the output."""
    pattern = advice.job.verify.number
    if pattern is None:
        return finished.wall_s
    value = last_number(pattern, finished.stdout)
    if value is None:
        raise MachineError(
            f"finds no number in the program's output: {printed(finished.stdout, 200)}",
            field="verify.number",
            value=pattern,
            hint="fix the expression, with the number in its group",
        )
    if not (value > 0 and math.isfinite(value)):
        raise MachineError(
            "is not a time of a step",
            field="verify.number",
            value=value,
            hint="make it match a positive number of seconds",
        )
    return value
