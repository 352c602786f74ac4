"""A guarded run from its start to its receipt: its levers, other guards, and what is written."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from elbowroom.errors import UsageError
from elbowroom.guard.board import VARIABLE, board_path
from elbowroom.guard.decision import BLOCK_SECONDS, THREADS_ARM, Decision
from elbowroom.guard.experiment import AS_IT_IS, NOTHING, Verdict
from elbowroom.guard.keeper import keeping, restore_left_over
from elbowroom.guard.lever import GuardedProgram, Lever
from elbowroom.guard.levers import check_numbers, find_levers, threads
from elbowroom.guard.node import guard_of_node
from elbowroom.guard.prediction import NO_MODEL, SiteModel
from elbowroom.guard.receipt import ArmEntry, LeverEntry, Receipt, WorstStep
from elbowroom.guard.steering import OUTSIDE_BLOCK, WARM_UP, MakeDecision, RunningLever, Steering, arm_of
from elbowroom.guard.step_file import STEPS_VARIABLE
from elbowroom.guard.thread_search import ThreadSearch
from elbowroom.launch import recorder
from elbowroom.launch.mpi import find_mpi
from elbowroom.launch.recorder import Adapter, RecordedCommand
from elbowroom.stats.interval import Interval


class GuardSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the processes of a guarded program get: the board of their node, and files of their steps."""

    board: str

    def environment(self) -> dict[str, str]:
        """As the environment of a process."""
        return {VARIABLE: self.board, STEPS_VARIABLE: "1"}

    def library(self, adapter: Adapter) -> str:
        """The tool that publishes and steers."""
        return f"libelbow_guard_{adapter}.so"


class GuardRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A guarded run: the `words` of the program, the levers that are named (None: those that are there),
    whether it only observes, the share of time that experiments may cost, an `earlier` receipt, and the model
    by which gains are predicted.
    """

    words: tuple[str, ...]
    named: tuple[str, ...] | None = None
    observe: bool = False
    budget: float = 0.005
    mpi: str | None = None
    earlier: Receipt | None = None
    model: SiteModel = NO_MODEL


def prepare(
    request: GuardRequest, board: str, levers: Sequence[Lever], program: GuardedProgram
) -> RecordedCommand:
    """The command that runs the program with the tool and what its levers need. UsageError as
    recorder.prepare.
    """
    variables: dict[str, str] = {}
    for lever in levers:
        variables |= lever.environment(program)
    preloads = [path for lever in levers for path in lever.preloads(program)]
    return recorder.prepare(
        request.words,
        GuardSettings(board=board),
        adapters=("mpi",),
        mpi=request.mpi,
        preloads=preloads,
        variables=variables,
    )


def guarded_program(request: GuardRequest) -> GuardedProgram:
    """The program as levers see it. UsageError where there is no such command."""
    recorder.prepare(request.words, None)
    return GuardedProgram(
        words=request.words,
        libraries={str(name): path for name, path in recorder.program_libraries(request.words).items()},
        env=dict(os.environ),
        named=request.named,
    )


def guard(request: GuardRequest, run: Callable[[RecordedCommand], int]) -> Receipt:
    """Runs the program by `run`, guarded as far as that is possible, and gives the receipt. UsageError for
    what the user has to correct, before anything is started.
    """
    program = guarded_program(request)
    levers, notes = ((), ()) if request.observe else find_levers(program)
    check_numbers(levers)
    if request.mpi is not None:
        find_mpi(request.mpi)
    with guard_of_node(os.environ) as node:
        if node.reason is not None:
            return _unguarded(request, run, (node.reason,))
        if node.board is None:
            notes = (*notes, *restore_left_over())
        with board_path() as path:
            try:
                prepared = prepare(request, str(node.board or path), levers, program)
            except UsageError as error:
                if request.mpi is not None:
                    raise
                node.offer(None)
                return _unguarded(request, run, (*notes, f"the program is not guarded: {error.sentence()}"))
            if node.board is not None:
                return _without_steps(request, run(prepared), (), acts_elsewhere=True)
            node.offer(path)
            with keeping(path.name.removeprefix("elbow-guard-")) as keeper:
                # A setting that paid in an earlier run acts from the beginning.
                pays = request.earlier is not None and request.earlier.chosen != AS_IT_IS
                warm_up = 0 if pays else WARM_UP
                steering = Steering(path, program, levers, keeper, _decider(request), request.model, warm_up)
                begin = time.process_time()
                with steering.steering():
                    code = run(prepared)
                own = time.process_time() - begin
        return _receipt(request, steering, notes, code, own)


def _decider(request: GuardRequest) -> MakeDecision:
    def decide(running: Sequence[RunningLever], own: int, processes: tuple[int, ...]) -> Decision | None:
        acting: dict[str, dict[int, int]] = {}
        placebo: dict[int, int] = {}
        search = None
        earlier = request.earlier
        chosen = None
        for lever, readings in sorted(running, key=_place_of):
            if lever.inside:
                placebo[lever.number] = 1
            if lever.name == threads.LEVER.name:
                if own and earlier is not None and earlier.threads:
                    chosen = {int(phase): count for phase, count in earlier.threads.items()}
                elif own:
                    search = ThreadSearch(threads.candidates(own, processes), own)
                continue
            for number, reading in enumerate(readings, start=2):
                if reading.works:
                    acting[arm_of(lever, reading.setting)] = {lever.number: number} if lever.inside else {}
        if not (acting or search or chosen or request.observe):
            return None
        outside = any(not one.lever.inside for one in running)
        return Decision(
            acting,
            placebo,
            search=search,
            budget=request.budget,
            seed=os.getpid(),
            earlier=None if earlier is None else {arm.arm: arm.rounds for arm in earlier.arms},
            threads=chosen,
            block_seconds=OUTSIDE_BLOCK if outside else BLOCK_SECONDS,
            until_round=0 if earlier is None else max(earlier.until_round, WARM_UP),
        )

    return decide


def _place_of(one: RunningLever) -> tuple[bool, float, int]:
    """Levers that may gain most by the model are tested first; those of which it says nothing come before
    those that it says gain too little to act.
    """
    predicted = (reading.predicted for reading in one.readings if reading.works)
    gains = [gain.value for gain in predicted if isinstance(gain, Interval)]
    most = max(gains, default=NOTHING)
    return most < NOTHING, -most, one.lever.number


def _unguarded(
    request: GuardRequest, run: Callable[[RecordedCommand], int], reasons: tuple[str, ...]
) -> Receipt:
    return _without_steps(request, run(recorder.prepare(request.words, None)), reasons)


def _without_steps(
    request: GuardRequest, code: int, reasons: tuple[str, ...], *, acts_elsewhere: bool = False
) -> Receipt:
    return Receipt(
        command=request.words,
        verdict="cannot say",
        gain=None,
        placebo=None,
        levers=(),
        switches=0,
        chosen="off",
        decided_at=None,
        steps=0,
        step_seconds=None,
        recognised_by="",
        ranks=0,
        exit_code=code,
        acts_elsewhere=acts_elsewhere,
        reasons=reasons,
    )


def _receipt(
    request: GuardRequest, steering: Steering, notes: Sequence[str], code: int, own: float
) -> Receipt:
    decision = steering.decision
    reasons = [*notes, *steering.notes, *(decision.notes if decision is not None else ())]
    verdict: Verdict = "cannot say" if decision is None else decision.verdict
    reasons += _why_nothing(request, steering)
    by_phase = decision.arms.get(THREADS_ARM) if decision is not None else None
    entries = [
        LeverEntry(
            name=lever.name,
            setting=one.setting,
            requested=one.requested,
            got=one.got,
            predicted=one.predicted,
        )
        for lever, readings in steering.running
        for one in readings
        if lever.name != threads.LEVER.name
    ]
    if by_phase is not None:
        predicted = next(
            readings[0].predicted for lever, readings in steering.running if lever.name == threads.LEVER.name
        )
        entries.append(_threads_entry(by_phase.threads, steering.got_threads, predicted))
    return Receipt(
        command=request.words,
        verdict=verdict,
        gain=None if decision is None else decision.gain,
        placebo=None if decision is None else decision.placebo,
        levers=tuple(entries),
        switches=steering.switches,
        chosen="off" if decision is None else decision.chosen,
        decided_at=steering.decided_at,
        until_round=0 if decision is None else decision.until_round,
        steps=steering.steps,
        step_seconds=steering.seconds / steering.steps if steering.steps else None,
        recognised_by=steering.recognised_by,
        ranks=steering.ranks,
        first_rank=steering.first_rank,
        exit_code=code,
        worst=None if steering.worst is None else WorstStep(seconds=steering.worst[0], arm=steering.worst[1]),
        held_seconds=steering.held,
        guard_seconds=own,
        threads={} if by_phase is None else {str(phase): n for phase, n in by_phase.threads.items()},
        by_lever=() if decision is None else decision.results,
        arms=tuple(
            ArmEntry(arm=one.arm, gain=one.gain, rounds=experiment.logs[one.arm])
            for experiment in (decision.experiments if decision is not None else ())
            for one in experiment.results
        ),
        reasons=tuple(reasons),
    )


def _threads_entry(
    wanted: Mapping[int, int], got: Mapping[int, int], predicted: Interval | str
) -> LeverEntry:
    return LeverEntry(
        name=threads.LEVER.name,
        setting="by phase",
        requested=_by_phase(wanted),
        got=_by_phase({phase: got.get(phase, 0) for phase in wanted}),
        predicted=predicted,
    )


def _by_phase(counts: Mapping[int, int]) -> str:
    return ", ".join(f"{count or 'n/a'} in phase {phase}" for phase, count in sorted(counts.items()))


def _why_nothing(request: GuardRequest, steering: Steering) -> list[str]:
    """Why nothing was decided."""
    if not steering.ranks:
        return ["no rank of the program was seen: it made no MPI call that a preloaded library could see"]
    if not steering.recognised_by:
        return [
            "the program ended before its steps were found: mark them by MPI_Pcontrol(1), or let it run "
            "longer"
        ]
    if request.observe:
        return ["only observed: no lever acted"]
    if steering.decision is None:
        return ["there is no lever for this program: it ran as it is"]
    results = steering.decision.results
    if results and not any(one.gain for one in results):
        return ["the program ended before the experiment said anything: let it run longer, or use --resume"]
    return _why_unclear(steering.decision)


def _why_unclear(decision: Decision) -> list[str]:
    """How wide the interval still is where that is why nothing can be said."""
    gains = {
        one.arm: one.gain for one in decision.results if one.verdict == "cannot say" and one.gain is not None
    }
    if decision.verdict != "cannot say" or not gains:
        return []
    arm, gain = max(gains.items(), key=lambda item: item[1].high)
    return [
        f"steps vary too much for so few rounds: {arm} saves between {100 * gain.low:.1f} and "
        f"{100 * gain.high:.1f} % of a step; let the program run longer, use --resume, or keep other work "
        "off its cores"
    ]
