"""`elbowroom tour`: from a run to a verified gain on a virtual machine, in half a minute.

docs/guide/five-minutes.md is made of the same steps (tools/five_minutes.py).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import NamedTuple

import click
import msgspec

from elbowroom.cli.answer import TYPED, Answer, as_typed
from elbowroom.cli.console import print_wrapped
from elbowroom.cli.options import NOISY
from elbowroom.errors import MachineError, UsageError
from elbowroom.files import disk_error, write_atomically
from elbowroom.verbs.declaration import Verb, function_of, option

ANSWER_PARAGRAPHS = 3
"""The verdict, the reason and the next command, which end the output of a command (cli/answer.py)."""
JOB_FILE = "job.toml"
JOB = """\
name = "stencil"
step = {comp_bytes = "3GB", comm_bytes = "1GB"}  # memory that the cores move, and messages
now = {cores = 18, comp_node = 1, comm_node = 1, overlap = true}  # the NIC is at node 0
may = {cores = "every", comp_node = "every", comm_node = "every"}  # what may change
"""


class Step(NamedTuple):
    """One command of the tour."""

    title: str
    text: str
    """Two sentences."""
    command: str
    """Without `elbowroom`."""
    excerpts: tuple[str, ...]
    """Regular expressions for the parts of the output that the tour shows before the answer."""
    paragraphs: int = ANSWER_PARAGRAPHS
    """How many of the last paragraphs are shown: the answer, or its command alone."""
    needs_job: bool = False
    """Whether it needs JOB_FILE."""


STEPS = (
    Step(
        "Measure",
        "A run measures each side alone and both together: here 1 to 18 computing cores, with messages of "
        "64 MB, and data on node 0 or 1. The virtual machine henri answers with the published curves of a "
        "real one.",
        "run model --machine henri --out henri --no-report",
        (),
    ),
    Step(
        "Read",
        "A row is one side of one point: its rate alone, its rate together, and the share that it keeps, "
        "with a 95 % interval. With 18 cores and all data on node 1, far from the NIC (place 1/1), both "
        "sides keep only three quarters.",
        "show henri",
        (r"^kernel .*", r"^memset_nt 18 .* 1/1 .*\n.*"),
        paragraphs=1,
    ),
    Step(
        "Fit",
        "A fit turns the run into a model of the machine: what a core demands, and what the memory, the link "
        "between the sockets and the NIC deliver. Each parameter has a 90 % interval.",
        "fit henri -o henri.json",
        (),
    ),
    Step(
        "Predict",
        "The model predicts any number of cores and any placement, also those that were not measured. "
        f"{JOB_FILE} describes a program, and here is what it gets now: all cores, and all data on node 1.",
        "predict henri.json --cores 18 --comp-node 1 --comm-node 1",
        (),
        needs_job=True,
    ),
    Step(
        "Advise",
        f"The advice compares the present setup with every other one that {JOB_FILE} allows. It recommends "
        "only changes whose gain exceeds the error of the model.",
        f"advise henri.json --job {JOB_FILE}",
        (),
        needs_job=True,
    ),
    Step(
        "Verify",
        "Predictions can be wrong, so the last step measures the gain: the present and the advised setup "
        "take turns. On your own machine, leave out `--machine henri`.",
        f"advise henri.json --job {JOB_FILE} --verify --machine henri --run-out verified",
        (r"^ +predicted 90 %.*\n.*\n.*\n.*",),
        needs_job=True,
    ),
)
INTRODUCTION = (
    "Six commands lead from a measurement to a verified gain on the virtual machine henri, in half a "
    "minute. Nothing is compiled, and your own machine is not measured."
)
NEXT = (
    ("elbowroom run quick", "This machine: does computing slow messages down here, and which side loses?"),
    (
        "elbowroom diagnose -- mpirun -n 4 ./app",
        "Your program: where does its time go, and what should change?",
    ),
    ("elbowroom help cluster", "Your cluster: runs on several nodes and under a scheduler."),
    (
        "elbowroom trace overlap profile.json",
        "Your trace (Kineto, Nsight Systems, OTF2): what does hiding cost?",
    ),
)
"""What to do after the tour: commands, and what each answers; the first one is advised."""
OMITTED = "…"


class TourStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step as it was played: the command, what it is for, and all that it printed."""

    title: str
    text: str
    command: str
    output: str
    seconds: float

    def excerpt(self) -> str:
        """The parts of the output that matter for a first visit, and the answer."""
        step = next(step for step in STEPS if step.title == self.title)
        return excerpt(self.output, step.excerpts, step.paragraphs)

    def paragraphs(self) -> list[str]:
        """Its output, whose last paragraphs are the answer."""
        return self.output.strip("\n").split("\n\n")


class Tour(msgspec.Struct, frozen=True, kw_only=True):
    """The steps of a tour, and the folder with their files."""

    schema: str = "elbowroom/tour"
    version: int = 1
    folder: str
    steps: tuple[TourStep, ...]
    seconds: float


class TourVerb(Verb):
    """Try everything once, in half a minute: run, show, fit, predict, advise and verify.

    A virtual machine answers: nothing is compiled, and this machine is not measured. The files of all steps
    stay in a new folder: ./tour, or a temporary one where that exists or cannot be made.
    """

    name = "tour"

    out: Path | str | None = option(
        "A new folder for the files; default: tour, or a temporary one.", "FOLDER", spelled="-o --out"
    )

    def do(self) -> Tour:
        """Runs the steps in a new folder `out`, and returns what each printed.

        UsageError where the folder exists already; MachineError where none can be made, or a step fails.
        """
        folder = new_folder(self.out)
        steps = tuple(play(step, folder) for step in STEPS)
        return _tour(folder, steps)

    def execute(self, as_json: bool) -> int:
        """Runs the steps; without --json, prints each one as it goes."""
        if as_json:
            return super().execute(as_json)
        folder = new_folder(self.out)
        print_wrapped(INTRODUCTION)
        print_wrapped(f"Their files are in {folder}. To type them yourself, begin in an empty folder.")
        steps = []
        for number, step in enumerate(STEPS, 1):
            print_heading(number, step)
            steps.append(play(step, folder))
            click.echo(f"\n{steps[-1].excerpt()}")
        return self.show(_tour(folder, tuple(steps)), as_json)

    def print(self, result: Tour) -> None:
        """What to do next."""
        click.echo(click.style("\n--- What next? ---\n", bold=True))
        for command, purpose in NEXT:
            click.echo(f"{purpose}\n  {as_typed(command)}")

    def answer(self, result: Tour) -> Answer:
        last = result.steps[-1]
        return Answer(
            verdict=" ".join(last.paragraphs()[-ANSWER_PARAGRAPHS].split()),
            why=f"Six commands led there in {result.seconds:.0f} s, and left their files in {result.folder}. "
            "A virtual machine answered: your own is still to be measured.",
            next=NEXT[0][0],
            style="green",
        )


tour = function_of(TourVerb, "tour")


def _tour(folder: Path, steps: tuple[TourStep, ...]) -> Tour:
    return Tour(folder=str(folder), steps=steps, seconds=sum(step.seconds for step in steps))


def print_heading(number: int, step: Step) -> None:
    """The title of a step, its two sentences, and its command; before it the job, where that is new."""
    click.echo(click.style(f"\n--- {number} of {len(STEPS)}: {step.title} ---\n", bold=True))
    print_wrapped(step.text)
    if step.needs_job and not STEPS[number - 2].needs_job:
        click.echo(f"\n{textwrap.indent(JOB, '    ', lambda line: bool(line.strip()))}", nl=False)
    click.echo(f"\n$ elbowroom {step.command}")
    sys.stdout.flush()


def excerpt(output: str, patterns: tuple[str, ...], paragraphs: int = ANSWER_PARAGRAPHS) -> str:
    """The parts of an output that match, and its last paragraphs; `…` stands for what is left out."""
    text = output.strip("\n")
    answer = "\n\n".join(text.split("\n\n")[-paragraphs:] if paragraphs else ())
    spans = [match.span() for pattern in patterns if (match := re.search(pattern, text, re.MULTILINE))]
    spans.append((len(text) - len(answer), len(text)))
    parts, end = [], 0
    for begin, stop in sorted(spans):
        if begin < end:
            begin = end
        if begin >= stop:
            continue
        if text[end:begin].strip():
            parts.append(OMITTED)
        elif parts and "\n\n" in text[end:begin]:
            parts.append("")
        parts.append(text[begin:stop].strip("\n"))
        end = stop
    return "\n".join(parts)


def new_folder(out: Path | str | None = None) -> Path:
    """A new folder for the files of a tour: `out`, or ./tour, or a temporary one."""
    if out is not None:
        return make_folder(Path(out))
    try:
        return make_folder(Path("tour"))
    except (UsageError, MachineError):
        try:
            return Path(tempfile.mkdtemp(prefix="elbowroom-tour-"))
        except OSError as error:
            raise MachineError(
                f"no folder can be made here, nor for temporary files ({error.strerror})",
                field="tour",
                hint="name a new folder that you may write to: --out FOLDER",
            ) from error


def make_folder(folder: Path) -> Path:
    """The folder, made now with those above it; UsageError where it exists, and as of `disk_error`."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise UsageError(
            "exists already", field="out", value=str(folder), hint="name a new folder, or remove this one"
        ) from None
    except OSError as error:
        raise disk_error(error, folder, "out") from error
    return folder


def play(step: Step, folder: Path) -> TourStep:
    """Runs the command of a step in a folder, as if it was typed; what it prints on stderr is shown.

    MachineError where it fails.
    """
    if step.needs_job:
        write_atomically(folder / JOB_FILE, JOB.encode())
    # In the folder, `./elbowroom` would be another file.
    own = {name: value for name, value in os.environ.items() if name != TYPED}
    package = str(Path(__file__).resolve().parents[2])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    start = time.monotonic()
    process = subprocess.run(
        [sys.executable, "-m", "elbowroom", *step.command.split()],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env={**own, "PYTHONPATH": os.pathsep.join(paths), "PYTHONIOENCODING": "utf-8"},
        check=False,
    )
    if process.returncode not in (0, NOISY):
        raise MachineError(
            f"ended with exit code {process.returncode}",
            field="tour",
            value=f"elbowroom {step.command}",
            hint=f"type it in {folder} to see why",
        )
    return TourStep(
        title=step.title,
        text=step.text,
        command=f"elbowroom {step.command}",
        output=process.stdout,
        seconds=time.monotonic() - start,
    )
