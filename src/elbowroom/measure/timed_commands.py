"""Commands timed in turns: interleaved, so that drift hits all alike, and journalled line by line, so that
what was stopped can go on.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from elbowroom.files import disk_error
from elbowroom.measure.manifest import Tell
from elbowroom.progress import Progress
from elbowroom.signals import Stopped, ends_as_interrupt
from elbowroom.store.folder import refuse_existing
from elbowroom.store.journal import Format, Lines

JOURNAL = "times.jsonl"

_TAIL = 300


Arm = TypeVar("Arm")
Turn = TypeVar("Turn")
Outcome = TypeVar("Outcome")
Line = TypeVar("Line", bound=Any)
"""A line of a journal of times, with `wall_s`: s that the run took in all."""
Key = TypeVar("Key", bound=Hashable)


def interleaved(
    arms: Sequence[Arm], repetitions: int, seed: int, *, mirrored: bool = False
) -> Iterator[tuple[int, Arm]]:
    """(repetition, arm): every arm once in each repetition, in random order. `mirrored`: every second
    repetition has the order of the one before, reversed (ABBA of two arms), so that a linear drift cancels in
    pairs. An arm that appears twice is its own placebo.
    """
    rng, order = random.Random(seed), list(arms)
    for repetition in range(repetitions):
        if mirrored and repetition % 2:
            order.reverse()
        else:
            order = list(arms)
            rng.shuffle(order)
        yield from ((repetition, arm) for arm in order)


def run_in_turns(
    turns: Iterable[Turn], run: Callable[[Turn], Outcome], ended: Callable[[Outcome], object]
) -> list[Outcome]:
    """What each turn gives; `ended` gets each outcome before the next turn begins."""
    outcomes = []
    for turn in turns:
        outcomes.append(run(turn))
        ended(outcomes[-1])
    return outcomes


def time_commands(
    turns: Sequence[Turn],
    run: Callable[[Turn], Line],
    journal: Lines[Line, Key],
    key: Callable[[Turn], Key],
    *,
    tell: Tell,
    stopped: Stopped,
    doing: str = "measuring",
    known: Callable[[Sequence[Line]], str] = lambda _: "",
) -> list[Line]:
    """The lines of the journal, after the turns that have none were run. An interrupt raises `stopped`; what
    was timed is kept. `known`: what the lines show so far.
    """
    lines = journal.read()
    left = [turn for turn in turns if key(turn) not in journal.done]
    work = sum(line.wall_s for line in lines) / len(lines) * len(left) if lines else None

    def ended(line: Line) -> None:
        journal.append(line)
        lines.append(line)
        bar.step()

    bar = Progress(len(left), work, what="runs", doing=doing, tell=tell, known=lambda: known(lines))
    try:
        with ends_as_interrupt(), bar:
            run_in_turns(left, run, ended)
            return lines
    except KeyboardInterrupt as interrupt:
        raise stopped from interrupt


def open_times(
    out: Path,
    form: Format[Line, Key],
    write: Callable[[Path], object],
    check: Callable[[Path], object] | None = None,
) -> Lines[Line, Key]:
    """The journal of times in a new folder, where `write` says what is timed; `check`: in a folder that was
    begun, which it refuses if something else is timed there.
    """
    if check is not None:
        check(out)
        return Lines(out / JOURNAL, form, create=True)
    refuse_existing(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(error, out, "out") from error
    journal = Lines(out / JOURNAL, form, create=True)
    try:
        write(out)
    except BaseException:
        journal.close()
        raise
    return journal


def last_number(pattern: str, output: str, *, flags: int = 0) -> float | None:
    """The number that an expression (its group, if it has one) finds last in what a command printed; None if
    it finds none.
    """
    matches = list(re.finditer(pattern, output, flags))
    text = "" if not matches else matches[-1][1 if matches[-1].re.groups else 0]
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def printed(output: str, most: int = _TAIL) -> str:
    """The end of what a command printed, for errors."""
    return output.strip()[-most:] or "nothing"
