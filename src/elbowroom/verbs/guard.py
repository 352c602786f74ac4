"""`elbowroom guard`: avoid interference while a program runs, with a receipt (docs/guide/guard.md)."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import print_all, print_wrapped
from elbowroom.cli.options import Output
from elbowroom.errors import MachineError, UsageError
from elbowroom.launch import recorder
from elbowroom.launch.planned_starts import PlannedStart
from elbowroom.quantities import number, plural
from elbowroom.verbs.declaration import Verb, command_argument, dry_run_option, option

if TYPE_CHECKING:
    from elbowroom.guard.guarding import GuardRequest
    from elbowroom.guard.prediction import SiteModel
    from elbowroom.guard.receipt import LeverEntry, Receipt
    from elbowroom.stats.interval import Interval
    from elbowroom.verbs.model_file import Model


LARGE = 64_000_000
"""Bytes of a message: levers act while large ones move, and models are for one size."""


class Guard(Verb):
    """Run CMD, avoid interference by levers where that pays, and say what it gained.

    Output, input, signals and exit code of the program stay its own; the receipt goes to stderr. Levers are
    used only while a step is significantly shorter with them. Numbers of threads may change the results of a
    program, so `threads` is used only where --levers names it.
    """

    name = "guard"

    levers: str | None = option("Levers to use: threads,starpu. Default: those that are there.", "LIST")
    observe: bool = option("Do everything but act.", default=False)
    receipt: Path | str | None = option("Write the receipt.", "R.json", type=Output(".json"))
    budget: float = option(
        "Share of the program's time that experiments may cost.", "PERCENT", default="0.5%"
    )
    resume: Path | str | None = option("Continue the experiments of an earlier run of this CMD.", "R.json")
    model: Model | Path | str | None = option(
        "Model of this machine that predicts gains; default: the newest in runs/.", "M.json"
    )
    mpi: str | None = option("MPI of the program; default: that of its launcher.", "PREFIX")
    restore: bool = option("Restore what a guard left that was killed; takes no CMD.", default=False)
    dry_run: bool = dry_run_option()
    words: tuple[str, ...] = command_argument("[-- CMD...]")
    stdout: IO[bytes] | int | None = None

    def do(self) -> Receipt:
        """Runs the program `words`, guarded. `levers`: names with commas; `observe`: nothing acts; `budget`:
        a share of 1; `resume`: a receipt of the same program; `model`: of this machine, by which gains are
        predicted, default the newest in runs/.

        What the program prints and its exit code stay its own. UsageError for levers that do not exist,
        receipts of other programs and models of other machines; a lever that cannot be used is a reason in
        the receipt.
        """
        from elbowroom.guard.guarding import guard
        from elbowroom.guard.job import write_receipt

        receipt = guard(self._request(), lambda prepared: recorder.run(prepared, self.stdout))
        if self.receipt is not None and not receipt.acts_elsewhere:
            receipt = write_receipt(Path(self.receipt), receipt, os.environ)
        return receipt

    def execute(self, as_json: bool) -> int:
        """Restores, or runs the program."""
        if not self.restore:
            return super().execute(as_json)
        from elbowroom.guard.keeper import restore_left_over

        if self.words:
            raise UsageError("takes no command", field="restore", hint="leave the command out")
        failed = restore_left_over()
        if failed:
            raise MachineError(failed[0], field="restore", hint="restore it by hand")
        print_wrapped("Nothing is left that a guard changed.")
        return 0

    def _request(self) -> GuardRequest:
        from elbowroom.guard.guarding import GuardRequest
        from elbowroom.guard.receipt import RECEIPT, check_same_program

        named = None if self.levers is None else tuple(filter(None, self.levers.split(",")))
        if self.observe and named is not None:
            raise UsageError(
                "cannot be given with --observe, which uses none", field="levers", hint="leave one out"
            )
        if not 0 <= self.budget <= 1:
            raise UsageError(
                "must be from 0 to 100 %", field="budget", value=self.budget, hint="default: 0.5%"
            )
        if named == ():
            raise UsageError("names no lever", field="levers", value=self.levers, hint="leave it out")
        if self.receipt is not None and not Path(self.receipt).absolute().parent.is_dir():
            raise UsageError(
                "is in a folder that does not exist",
                field="receipt",
                value=str(self.receipt),
                hint="make the folder first",
            )
        earlier = None
        if self.resume is not None:
            earlier = RECEIPT.read(Path(self.resume))
            check_same_program(earlier, tuple(self.words))
        return GuardRequest(
            words=tuple(self.words),
            named=named,
            observe=self.observe,
            budget=self.budget,
            mpi=self.mpi,
            earlier=earlier,
            model=self._machine_model(),
        )

    def _machine_model(self) -> SiteModel:
        """The one that is given, else the newest in runs/ for large messages on this machine."""
        from elbowroom.guard.prediction import NO_MODEL, SiteModel

        if self.model is None and not any(Path("runs").glob("*/models/*.json")):
            return NO_MODEL
        from elbowroom.verbs.calibrate import check_machine, earlier_models
        from elbowroom.verbs.model_file import load_model

        hosts = (socket.gethostname(),)
        if self.model is not None:
            model = load_model(self.model)
            check_machine(model, hosts, self.model, "node")
            return SiteModel(model.document)
        earlier = earlier_models(hosts, LARGE)
        return SiteModel(None if earlier.newest is None else earlier.newest.document, earlier.sentence())

    def planned_starts(self) -> Iterator[PlannedStart]:
        """The program, with the tool."""
        from elbowroom.guard.guarding import guarded_program, prepare
        from elbowroom.guard.levers import find_levers

        request = self._request()
        program = guarded_program(request)
        levers = () if self.observe else find_levers(program)[0]
        prepared = prepare(request, "/dev/shm/elbow-guard-UID-ID", levers, program)
        yield PlannedStart(what="the program, guarded", commands=(prepared.line(),))

    def show(self, result: Receipt, as_json: bool) -> int:
        """Nothing where the guard of another rank acted: that one shows the receipt."""
        return result.exit_code if result.acts_elsewhere else super().show(result, as_json)

    def print(self, result: Receipt) -> None:
        """On stderr: stdout is the program's."""
        from elbowroom.guard.node import rank_of

        if rank_of(os.environ) is not None:
            first = "" if result.first_rank is None else f", from rank {result.first_rank} on"
            print_wrapped(f"Node {result.host}, {plural(result.ranks, 'rank')}{first}:")
        print_all(result.reasons, style="yellow")
        for lever in result.levers:
            print_wrapped(f"{lever.name}: asked {lever.requested}; got {lever.got}{_prediction(lever)}")
        for node in result.nodes if len(result.nodes) > 1 else ():
            gain = "" if node.gain is None else f", {_percent(node.gain)} of a step"
            print_wrapped(f"{node.host}, {plural(node.ranks, 'rank')}: {node.verdict} ({node.chosen}{gain})")
        for one in result.by_lever if len(result.by_lever) > 1 else ():
            gain = (
                ""
                if one.gain is None
                else f": {one.arm} saves {_percent(one.gain)} of a step of {one.reference}"
            )
            print_wrapped(f"{one.lever}: {one.verdict}{gain}")

    def answer(self, result: Receipt) -> Answer:
        """The verdict, what it is based on, and how to go on."""
        return Answer(_verdict(result), _basis(result), self._next(result), _STYLES[result.verdict])

    def _next(self, result: Receipt) -> str:
        if result.verdict == "cannot say" and result.steps and self.receipt is not None and not self.observe:
            levers = () if self.levers is None else ("--levers", self.levers)
            again = ("--receipt", self.receipt, "--resume", self.receipt)
            return command_line("guard", *levers, *again, "--", *result.command)
        return command_line("diagnose", "--", *result.command)

    def stdout_is_taken(self, as_json: bool) -> bool:
        """By the program, whose output goes to stderr beside a document."""
        return not as_json

    def exit_code(self, result: Receipt) -> int:
        return result.exit_code


def _prediction(entry: LeverEntry) -> str:
    """What the model lets the setting gain; nothing where there is none."""
    gain = entry.predicted
    return "" if isinstance(gain, str) else f"; by the model it saves at most {_percent(gain)} of a step"


_STYLES = {"pays": "green", "off": "", "cannot say": "yellow"}


def _verdict(receipt: Receipt) -> str:
    gain = "" if receipt.gain is None else f" {_percent(receipt.gain)}"
    if receipt.verdict == "pays":
        return f"The guard pays: steps are{gain} shorter ({receipt.chosen})."
    if receipt.verdict == "off":
        return f"The guard does not pay here: off.{f' Steps are{gain} shorter at best.' if gain else ''}"
    return f"The guard cannot say whether it pays.{f' Steps are{gain} shorter at best.' if gain else ''}"


def _basis(receipt: Receipt) -> str:
    if not receipt.steps or receipt.step_seconds is None:
        return "No steps were counted."
    placebo = (
        "what the guard itself costs is not known yet"
        if receipt.placebo is None
        else f"the placebo, which acts without effect, saves {_percent(receipt.placebo)}"
    )
    rounds = max((len(arm.rounds) for arm in receipt.arms), default=0)
    return (
        f"{plural(receipt.steps, 'step')} of {number(receipt.step_seconds * 1e3, 3)} ms, recognised by "
        f"{receipt.recognised_by}, {plural(rounds, 'round')} of the experiment, "
        f"{receipt.switches} switches; {placebo}. {_side_effects(receipt)}"
    )


def _side_effects(receipt: Receipt) -> str:
    worst = receipt.worst
    shown = f"The guard itself took {number(receipt.guard_seconds, 2)} s of a core"
    if receipt.held_seconds:
        shown += f", and held work back for {number(receipt.held_seconds, 2)} s in all"
    if worst is None:
        return f"{shown}."
    return f"{shown}; the longest step took {number(worst.seconds * 1e3, 3)} ms ({worst.arm})."


def _percent(gain: Interval) -> str:
    return f"{100 * gain.value:.1f} % ({100 * gain.low:.1f} to {100 * gain.high:.1f} %)"
