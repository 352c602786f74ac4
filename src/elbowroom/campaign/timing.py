"""Checking an advice with the user's own program: run in both configurations, in pairs, and timed.

Each pair is one repetition; which of the two is first is random in every other one and the other way round in
the next (ABBA). What was timed is journalled line by line, so that a check that was stopped can go on.
"""

from __future__ import annotations

import math
import random
import re
import shlex
import string
from collections.abc import Sequence
from pathlib import Path

import msgspec

from elbowroom.advise.advice import Advice
from elbowroom.advise.checking import Column, Compared, compare, compared_with, steps_of_times
from elbowroom.advise.job import AXES, Setup
from elbowroom.advise.setups import comm_socket, differing
from elbowroom.campaign.parts import Tell, terminated_as_interrupt
from elbowroom.campaign.progress import Progress
from elbowroom.campaign.running import Stopped
from elbowroom.errors import MachineError, UsageError
from elbowroom.launch.program import Finished, run_program
from elbowroom.model.document import Document
from elbowroom.store.files import disk_error, write_atomically
from elbowroom.store.folder import refuse_existing

ADVICE, JOURNAL = "advice.json", "times.jsonl"
FIRST_GUESS = 10.0
"""Seconds of one run of the program, until the first has ended."""


class Timed(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the journal: a run of the program in the present (0) or the other (1) configuration;
    `seconds` is what counts, `wall_s` the wall time.
    """

    repetition: int
    which: int
    seconds: float
    wall_s: float


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
            mend="write {{ for {",
        ) from error
    for name in named - set(AXES):
        raise UsageError(
            f"names {{{name}}}, which is no choice of a job",
            field="verify.command",
            value=command,
            mend=f"known: {', '.join(AXES)}",
        )
    other = compared_with(advice).setup
    unsaid = [axis for axis in differing(other, advice.now.setup) if axis not in named]
    if unsaid:
        raise UsageError(
            f"does not say {', '.join(f'{{{axis}}}' for axis in unsaid)}, which the advice changes",
            field="verify.command",
            value=command,
            mend="put it where the program is told that",
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
    said = {axis: str(getattr(setup, axis)) for axis in AXES}
    said |= {
        "comp_node": str(nodes[setup.comp_node]),
        "comp_node_other": str(nodes[node_other]),
        "comm_node": str(nodes[setup.comm_node]),
        "comm_socket": str(comm_socket(setup, advice.machine)),
        "size": str(document.calibration.size if setup.size is None else setup.size),
        "overlap": str(int(setup.overlap)),
    }
    return said


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
    if not again:
        refuse_existing(out)
        try:
            out.mkdir(parents=True)
        except OSError as error:
            raise disk_error(error, out, "out") from error
        write_atomically(out / ADVICE, msgspec.json.encode(advice))
    else:
        _same(advice, out)
    done = _read(out / JOURNAL)
    left = [
        item for item in order(repetitions, seed) if item not in {(one.repetition, one.which) for one in done}
    ]
    guess = sum(one.wall_s for one in done) / len(done) if done else FIRST_GUESS
    try:
        with terminated_as_interrupt(), Progress(len(left), guess * len(left), tell, "timing") as bar:
            for repetition, which in left:
                finished = run_program(words[which], patience)
                one = Timed(
                    repetition=repetition,
                    which=which,
                    seconds=_seconds(advice, finished),
                    wall_s=finished.wall_s,
                )
                _append(out / JOURNAL, one)
                done.append(one)
                bar.step(("now", "advised")[which])
    except KeyboardInterrupt as interrupt:
        raise Stopped(
            "stopped; what was timed is kept", field="verify", value=str(out), mend="go on with --resume"
        ) from interrupt
    totals = steps_of_times([_column(done, which) for which in (0, 1)], seed)
    return compare(advice, totals, repetitions, source=str(out))


def _same(advice: Advice, out: Path) -> None:
    """Refuses to go on with a check of something else; drops a torn last line of the journal."""
    try:
        begun = msgspec.json.decode((out / ADVICE).read_bytes(), type=Advice)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError) as error:
        raise UsageError(
            f"is no check that was begun ({error})", field="resume", value=str(out), mend="leave --resume out"
        ) from error
    both = [(item.job, item.now.setup, compared_with(item).setup) for item in (begun, advice)]
    if both[0] != both[1]:
        raise UsageError(
            "was begun for another job or advice",
            field="resume",
            value=str(out),
            mend="start anew: --run RUN",
        )
    lines = [msgspec.json.encode(one) + b"\n" for one in _read(out / JOURNAL)]
    write_atomically(out / JOURNAL, b"".join(lines))


def order(repetitions: int, seed: int) -> list[tuple[int, int]]:
    """(repetition, configuration) in the order in which they are run."""
    rng, first, found = random.Random(seed), 0, []
    for repetition in range(repetitions):
        first = rng.randrange(2) if repetition % 2 == 0 else 1 - first
        found += [(repetition, first), (repetition, 1 - first)]
    return found


def _column(done: Sequence[Timed], which: int) -> Column:
    chosen = [one for one in done if one.which == which]
    return Column([one.seconds for one in chosen], [one.repetition for one in chosen])


def _seconds(advice: Advice, finished: Finished) -> float:
    """The wall time, or the number that the job's expression finds last in the output."""
    pattern = advice.job.verify.number
    if pattern is None:
        return finished.wall_s
    found = re.findall(pattern, finished.output)
    try:
        value = float(found[-1] if isinstance(found[-1], str) else found[-1][0])
    except (IndexError, ValueError) as error:
        raise MachineError(
            f"finds no number in what the program said: {finished.output.strip()[-200:] or 'nothing'}",
            field="verify.number",
            value=pattern,
            mend="mend the expression, with the number in its group",
        ) from error
    if not (value > 0 and math.isfinite(value)):
        raise MachineError(
            "is no time of a step", field="verify.number", value=value, mend="let it find seconds above 0"
        )
    return value


def _read(path: Path) -> list[Timed]:
    """The journal's lines; a last one that is torn is left out."""
    if not path.exists():
        return []
    found = []
    for number, line in enumerate(lines := path.read_bytes().split(b"\n")):
        try:
            found.append(msgspec.json.decode(line, type=Timed))
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            if number == len(lines) - 1:
                break
            raise UsageError(
                f"line {number + 1} is damaged ({error})", field="resume", value=str(path), mend="start anew"
            ) from error
    return found


def _append(path: Path, one: Timed) -> None:
    try:
        with path.open("ab") as file:
            file.write(msgspec.json.encode(one) + b"\n")
    except OSError as error:
        raise disk_error(error, path) from error
