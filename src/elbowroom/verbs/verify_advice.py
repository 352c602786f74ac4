"""Advice against measurements: the present and the advised configuration, interleaved."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from elbowroom.advise.advice import Advice
from elbowroom.advise.verification import Compared
from elbowroom.cli.answer import Answer
from elbowroom.cli.console import chatter
from elbowroom.errors import UsageError
from elbowroom.launch.planned_starts import PlannedStart
from elbowroom.measure import program_times, verify
from elbowroom.measure.campaign import default_out
from elbowroom.measure.prepared import Request, start_of
from elbowroom.measure.source import choose
from elbowroom.verbs.advise_tables import compared_answer, print_compared
from elbowroom.verbs.declaration import Verb, argument, function_of, included
from elbowroom.verbs.model_file import Model, load_model
from elbowroom.verbs.run_folder import Run
from elbowroom.verbs.run_options import Launching, Virtual, place

REPETITIONS = 9


class VerifyAdvice(Verb):
    """The part of `advise --verify` that measures; in Python a function of its own."""

    advice: Advice = argument()
    model: Model | Path | str = argument()
    repetitions: int = REPETITIONS
    run: Path | str | None = None
    resume: Path | str | None = None
    virtual: Virtual = included(Virtual)
    launching: Launching = included(Launching)
    seed: int | None = None
    patience: float | None = None
    command: Sequence[str] = ()
    dry_run: bool = False
    tell: Callable[[str], object] = chatter

    def do(self) -> Compared:
        """Measures the present and the advised configuration, interleaved, in a new folder `run` (or goes on
        with `resume`), and says what was gained beside what was predicted; where nothing is advised, the best
        other prediction takes the advised one's place.

        The probe measures both sides' bandwidths, of which the steps follow, or the job's own command is
        timed. `model`: that of the advice. `machine`: a virtual one answers, as of `elbowroom.run`.
        """
        if self.resume is not None and self.run is not None:
            raise UsageError(
                "cannot be given with resume", field="run", value=str(self.run), hint="leave one out"
            )
        document = load_model(self.model).document
        if self.advice.job.verify.command is not None:
            return self._time_program()
        if self.resume is not None:
            folder, results, compared = verify.verify_again(
                self.advice, document, Path(self.resume), self.tell
            )
        else:
            where = place(self.launching, self.virtual, self.seed)
            request = Request(
                plan=verify.NAME,
                where=where,
                out=None if self.run is None else str(self.run),
                seed=self.seed,
                patience=self.patience,
                command=tuple(self.command),
            )
            folder, results, compared = verify.verify(
                self.advice, document, request, choose(where), self.repetitions, self.tell
            )
        Run(folder, results).report()
        return compared

    def print(self, result: Compared) -> None:
        print_compared(result)

    def answer(self, result: Compared) -> Answer:
        return compared_answer(result)

    def _time_program(self) -> Compared:
        if self.virtual.machine is not None:
            raise UsageError(
                "cannot run a program",
                field="machine",
                value=self.virtual.machine,
                hint="leave verify.command out of the job",
            )
        return program_times.time_program(
            self.advice,
            load_model(self.model).document,
            Path(self.resume or self.run or default_out(verify.NAME)),
            repetitions=self.repetitions,
            seed=self.seed or 1,
            patience=self.patience,
            tell=self.tell,
            again=self.resume is not None,
        )

    def planned_starts(self) -> Iterator[PlannedStart]:
        """Both setups: as programs, or as points of the probe."""
        document = load_model(self.model).document
        if self.advice.job.verify.command is None:
            source = choose(place(self.launching, self.virtual, self.seed))
            prepared = verify.prepare(self.advice, document, source, self.repetitions, self.seed or 1)
            yield start_of(prepared, "the present and the other setup")
            return
        setups = ("the present setup", "the other setup")
        for what, words in zip(setups, program_times.commands(self.advice, document), strict=True):
            yield PlannedStart(what=what, commands=(shlex.join(words),), times=self.repetitions)


verify_advice = function_of(VerifyAdvice, "verify_advice")
