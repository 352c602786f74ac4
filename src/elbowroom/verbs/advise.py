"""`elbowroom advise`: from a prediction to a better run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from elbowroom.cli.answer import Answer, command_line, print_answer
from elbowroom.cli.console import print_json
from elbowroom.cli.options import NOISY, REPEAT, Output
from elbowroom.documents import encode, parse_toml
from elbowroom.draw.files import save_panels
from elbowroom.errors import UsageError
from elbowroom.files import read_text, write_atomically
from elbowroom.verbs.advise_tables import advice_answer, print_advice
from elbowroom.verbs.declaration import Verb, argument, dry_run_option, included, option
from elbowroom.verbs.run_options import MODEL, Launching, Virtual, out_option, seed_option, timeout_option

if TYPE_CHECKING:
    from elbowroom.advise.advice import Advice
    from elbowroom.advise.contention_map import ContentionMap
    from elbowroom.advise.gpu_job import GpuAdvice, GpuJob
    from elbowroom.draw.figure import Figure
    from elbowroom.verbs.model_file import Model
    from elbowroom.verbs.verify_advice import VerifyAdvice

TUNER = (".conf", ".csv")
"""Endings of files for NCCL's tuner."""


class Advise(Verb):
    """Advise how to run a job: cores, nodes, messages, threads, overlap.

    Compares every setup that the job allows, and advises the changes whose gain is significant, each with its
    predicted gain, the 90 % interval, and the reason. A job with a table [gpu] is one of an accelerator: who
    moves its data, with how many SMs, from which node, beside how many cores.
    """

    name = "advise"

    source: str = argument(metavar="M.json|NAME")
    job: str = option("The job and its choices (`elbowroom help advise`).", "JOB.toml", required=True)
    model_kind: str | None = option(
        "Kind of model; default: flow if it was fitted, threshold for a published machine.",
        type=MODEL,
        formerly="--model",
    )
    collectives: str | None = option(
        "Run of the plan `collectives`: how long the job's collective takes each way.", "RUN"
    )
    out: str | None = out_option(
        Output(), "Write the advice (.json), the contention map (.svg, .png), or NCCL tuning (.conf)."
    )
    verify: bool = option("Then measure the present and the advised setup.")
    run: str | None = option(
        "With --verify: folder of the measurements; never overwritten.",
        "RUN",
        spelled="--run-out",
        formerly="--run",
    )
    resume: str | None = option("With --verify: continue measurements that were stopped.", "RUN")
    repeat: int | None = option("With --verify: repetitions of each setup; default 9.", "N", type=REPEAT)
    virtual: Virtual = included(
        Virtual, own={"machine": {"help": "With --verify: use a virtual machine: henri:credits."}}
    )
    seed: int | None = seed_option("With --verify: seed of the order and of the noise.")
    launching: Launching = included(
        Launching,
        own={
            "launcher": {"help": "With --verify: as in `elbowroom run`."},
            "mpi": {"help": "With --verify: as in `elbowroom run`."},
            "hosts": {"help": "With --verify: hosts for mpiexec, srun, flux."},
            "hostfile": {"help": "With --verify: file of hosts for mpiexec, one per line."},
        },
    )
    patience: float | None = timeout_option("With --verify: time limit of one repetition or program run.")
    dry_run: bool = dry_run_option()

    def execute(self, as_json: bool) -> int:
        """Advises, and with `verify` measures; the advice is printed before."""
        from elbowroom.advise.gpu_job import GpuAdvice

        self._check(load_gpu_job(self.job) is not None)
        advice = self.do()
        verification = None if isinstance(advice, GpuAdvice) else self._verification(advice)
        if self.dry_run and verification is not None:
            return verification.execute(as_json)
        if self.out is not None:
            save(advice, Path(self.out))
        if not as_json:
            self.print(advice)
            if verification is None or not self.verify:
                print_answer(self.answer(advice))
        compared = verification.do() if verification is not None and self.verify else None
        if as_json:
            verified = {} if compared is None else {"verified": compared}
            print_json({**msgspec.to_builtins(advice), **verified})
        elif verification is not None and compared is not None:
            verification.show(compared, as_json)
        return NOISY if compared is not None and not compared.trusted else 0

    def do(self) -> Advice | GpuAdvice:
        """The advice."""
        from elbowroom.verbs.model_file import advise
        from elbowroom.verbs.run_folder import open

        job = load_gpu_job(self.job)
        if job is not None:
            return advise_gpu(self.source, job)
        run = None if self.collectives is None else open(self.collectives)
        return advise(self.source, self.job, name=self.model_kind, collectives=run)

    def print(self, result: Advice | GpuAdvice) -> None:
        """The advice, and the name of its file."""
        print_advice(result)
        if self.out is not None:
            click.echo(self.out)

    def answer(self, result: Advice | GpuAdvice) -> Answer:
        """The advice, its first reason, and the command that measures it."""
        from elbowroom.advise.gpu_job import GpuAdvice

        if isinstance(result, GpuAdvice):
            reasons = [each.reason for each in result.answers if each.reason]
            following = self.again(out="tuner.conf") if self.out is None else command_line("help", "gpu")
            return Answer(result.sentence, " ".join(reasons[:1]) or "No question has an answer.", following)
        return advice_answer(result, self.source, self.job)

    def _check(self, accelerator: bool) -> None:
        """UsageError for options that do not go together, or not with a job of an accelerator."""
        if accelerator:
            names = ("model_kind", "collectives", "verify", *self._of_verification)
            self._refuse(names, "does not apply to accelerator jobs", "leave it out")
            _check_out(self.out, (".json", *TUNER), "a file for NCCL's tuner (.conf, .csv)")
            return
        if not self.verify:
            self._refuse(self._of_verification, "is only valid with --verify", "add --verify")
        _check_out(self.out, (".json", ".svg", ".png", ""), "a picture of the map (.svg, .png)")
        if self.dry_run and not self.verify:
            raise UsageError("is only valid with --verify", field="dry_run", hint="add --verify")

    def _verification(self, advice: Advice) -> VerifyAdvice:
        from elbowroom.verbs.verify_advice import REPETITIONS, VerifyAdvice

        return VerifyAdvice(
            advice=advice,
            model=self.source,
            repetitions=self.repeat or REPETITIONS,
            run=self.run,
            resume=self.resume,
            virtual=self.virtual,
            launching=self.launching,
            seed=self.seed,
            patience=self.patience,
            command=("elbowroom", *sys.argv[1:]),
            dry_run=self.dry_run,
        )

    @property
    def _of_verification(self) -> list[str]:
        own = ("run", "resume", "repeat", "seed", "patience")
        return [member.name for member in self.members if member.holder is not None or member.name in own]

    def _refuse(self, names: Sequence[str], message: str, hint: str) -> None:
        """UsageError for the first of these options that is given."""
        for member in self.members:
            if member.name in names and member.given(self) and member.declared is not None:
                value = member.value(self)
                shown = ",".join(value) if isinstance(value, tuple) else value
                raise UsageError(message, field=member.declared.typed(member.name), value=shown, hint=hint)


def _check_out(out: str | None, endings: Sequence[str], other: str) -> None:
    """Refuses a name of another ending before anything is computed."""
    if out is not None and Path(out).suffix.lower() not in endings:
        raise UsageError(
            f"is neither advice (.json) nor {other}",
            field="out",
            value=out,
            hint="end the name in one of these",
        )


def load_gpu_job(path: Path | str) -> GpuJob | None:
    """The job of an accelerator in a file; None where the file holds another job.

    UsageError tells field, value and hint of what is wrong.
    """
    from elbowroom.advise.gpu_job import decode, is_gpu_job

    where = Path(path)
    text = read_text(where, field="job", hint="name a TOML file, see `elbowroom help advise`")
    if not is_gpu_job(parse_toml(text, field="job", where=where.name)):
        return None
    return decode(text, where.name)


def advise_gpu(model: Model | Path | str, job: GpuJob) -> GpuAdvice:
    """How a step should run on the accelerator of a model (M.json): who moves the bytes, with how many SMs,
    from where, beside how many cores.

    UsageError where the model has no accelerator, or cannot answer any setup of the job.
    """
    from elbowroom.advise import gpu_advisor
    from elbowroom.verbs.model_file import load_model

    loaded = load_model(model)
    source = str(loaded.path) if loaded.path is not None else loaded.machine.name
    return gpu_advisor.advise_gpu(loaded.document, job, model=source)


def load_advice(path: Path | str) -> Advice:
    """Advice from its file; UsageError where it is none, is damaged, or was written by a newer release."""
    from elbowroom.advise.advice import ADVICE_FORMAT

    return ADVICE_FORMAT.read(Path(path))


def save(advice: Advice | GpuAdvice, path: Path) -> None:
    """Writes advice as JSON; its contention maps as .png or .svg, a row for each placement; that for an
    accelerator for NCCL's tuner (.conf, .csv).
    """
    from elbowroom.advise.advice import ADVICE_FORMAT, Advice
    from elbowroom.advise.gpu_advisor import nccl_tuner

    ending = path.suffix.lower()
    if not isinstance(advice, Advice):
        write_atomically(path, nccl_tuner(advice).encode() if ending in TUNER else encode(advice))
    elif ending in ("", ".json"):
        ADVICE_FORMAT.write(path, advice)
    else:
        title = f"{advice.job.name} on {advice.machine.name}{' (virtual)' if advice.machine.virtual else ''}"
        save_panels(map_figures(advice), path, columns=2, title=f"{title}: {advice.sentence}", shared=False)


def contention_maps(advice: Advice, model: Model | Path | str | None = None) -> tuple[ContentionMap, ...]:
    """What each side keeps and how long a step takes, for any number of cores and any message size, with the
    job's data as now, and as advised where that differs; with the job's points on it.

    `model`: that of the advice (default: the file or machine it names). UsageError for one of another
    machine.
    """
    from elbowroom.advise import contention_map
    from elbowroom.verbs.model_file import load_model

    document = load_model(advice.model if model is None else model).document
    contention_map.check_shown(advice, document)
    return contention_map.contention_maps(document, advice)


def map_figures(advice: Advice, model: Model | Path | str | None = None) -> tuple[Figure, ...]:
    """The maps of `contention_maps` as figures: two for each, who loses and how long a step takes."""
    from elbowroom.advise.map_figures import figures

    return figures(contention_maps(advice, model), advice.machine)
