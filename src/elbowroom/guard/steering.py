"""Steers a program while it runs: finds the steps of its ranks on this node, plans the arms of steps to come,
and takes what they took.

A thread of the guard wakes some times a second. The ranks change arms by themselves, exactly at the begin of
a step, as long as the plan reaches; levers outside of the ranks are set here, and steps that began before
that are not counted.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.ma  # np.median loads it: now, and not beside the first steps

from elbowroom.errors import ElbowroomError
from elbowroom.guard.board import Board
from elbowroom.guard.decision import THREADS_LEVER, ArmSettings, Block, Decision, parts_of
from elbowroom.guard.experiment import AS_IT_IS, PLACEBO
from elbowroom.guard.keeper import Keeper
from elbowroom.guard.lever import GuardedProgram, Lever, LeverAccess, LeverReading
from elbowroom.guard.prediction import NO_MODEL, PredictedGains, SiteModel
from elbowroom.guard.rank_steps import MIXED, JoinedSteps, RankSteps
from elbowroom.guard.recognition import FEWEST_CALLS, find_anchor
from elbowroom.guard.step_file import CALLS, STEPS, StepFile
from elbowroom.guard.thread_search import StepObservation
from elbowroom.quantities import plural

EARLY, QUICK, SLOW = 0.004, 0.02, 0.2
"""Seconds between two looks at least: in the first EARLY_STEPS, while something is to be found, and when all
is decided.
"""
SHARE, START = 0.001, 0.1
"""Looks take at most this share of a core; while something is to be found, after so many seconds of it."""
LEAST_PRIORITY = 19
"""Of the thread that looks: it takes what the program leaves of its cores, where it leaves some."""
LONGEST = 2.0
"""Seconds between two looks at most."""
MOST_BLOCKS = 16
"""That are planned at once."""
EARLY_STEPS = 100
OUTSIDE_BLOCK = 0.5
"""A block takes at least this long where a lever is outside of the ranks, s."""
MOST_CALLS = 4 * CALLS
"""Calls in which steps must be found."""
WARM_UP = 2
"""Steps that are in no round: the first ones."""
FILE_TIME = 0.1
"""Seconds after which a change of a folder shows in its time, at most."""
WATCHED = 4
"""Steps over which the rate of messages is measured, where there is a model."""


class RunningLever(NamedTuple):
    """A lever that is used: its settings, and what was asked and got of each."""

    lever: Lever
    readings: tuple[LeverReading, ...]


class NodeTraffic(NamedTuple):
    """After so many steps, at a time of the monotonic clock: bytes of messages from and to the ranks here."""

    at: float
    steps: int
    sent: int
    received: int


MakeDecision = Callable[[Sequence[RunningLever], int, tuple[int, ...]], Decision | None]


class Steering:
    """Steers one run. `make_decision` is called once, when the steps are found and the levers were tried,
    with the number of threads of the program (0: no OpenMP) and the processes of the ranks; it gives None
    where nothing is to be decided.
    """

    def __init__(
        self,
        board_path: Path,
        program: GuardedProgram,
        levers: Sequence[Lever],
        keeper: Keeper,
        make_decision: MakeDecision,
        model: SiteModel = NO_MODEL,
        warm_up: int = WARM_UP,
    ) -> None:
        """Nothing is started yet. `model`: by which gains are predicted; `warm_up`: steps before it acts."""
        self._board_path, self._program, self._keeper = board_path, program, keeper
        self._levers, self._make_decision, self._model = tuple(levers), make_decision, model
        self._traffic_before: NodeTraffic | None = None
        self._warm_up = warm_up
        self._stop = threading.Event()
        self._pause = QUICK
        self._files: dict[Path, StepFile] = {}
        self._ready = False
        self._left_alone = False
        self._folder_changed: float | None = None
        self._gone_since: float | None = None
        self._tried_at = FEWEST_CALLS
        self._joined: RankSteps | None = None
        self._leader: Path | None = None
        self._next = 0
        self._planned: deque[tuple[int, Block]] = deque()
        self._taken: list[StepObservation] = []
        self._access: LeverAccess | None = None
        self._outside: dict[str, str] = {}
        self._outside_since = 0.0
        self._last_arm = 0
        self._pushed: dict[str, ArmSettings] = {}
        self.decision: Decision | None = None
        self.running: list[RunningLever] = []
        self.notes: list[str] = []
        self.recognised_by = ""
        self.switches = 0
        self.steps = 0
        self.seconds = 0.0
        self.worst: tuple[float, str] | None = None
        self._held: dict[int, float] = {}
        self.decided_at: int | None = None
        self.got_threads: dict[int, int] = {}

    @property
    def ranks(self) -> int:
        """Ranks of this node that were seen."""
        return len(self._files)

    @property
    def first_rank(self) -> int | None:
        """The least rank of this node; None where none was seen."""
        return min((file.rank for file in self._files.values()), default=None)

    @property
    def held(self) -> float:
        """For how long levers held work back, of all ranks and outside of them, s."""
        return sum(self._held.values()) + sum(one.lever.held for one in self.running)

    @contextlib.contextmanager
    def steering(self) -> Iterator[None]:
        """Steers while the block runs; a failure of the guard is a note, never one of the program."""
        thread = threading.Thread(target=self._run, name="guard", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()
            self._apply_outside(AS_IT_IS)
            self._note_fixed()
            if self._access is not None:
                self._access.board.close()
            for file in self._files.values():
                file.close()
            for path in self._board_path.parent.glob(f"{self._board_path.name}.steps-*"):
                path.unlink(missing_ok=True)

    def _run(self) -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LEAST_PRIORITY)
        begin, spent = time.monotonic(), 0.0
        while not self._left_alone:
            stopped, was_ready = self._stop.wait(self._pause), self._ready
            try:
                self.look()
            except (ElbowroomError, OSError, ValueError) as error:
                sentence = error.sentence() if isinstance(error, ElbowroomError) else str(error)
                self._leave_alone(f"the guard stopped: {sentence}")
            if stopped:
                return
            cost, spent = time.thread_time() - spent, time.thread_time()
            self._pause = self._interval()
            is_dear = self._pause == SLOW or spent > START + SHARE * (time.monotonic() - begin)
            if is_dear and was_ready:  # the look that tried the levers says nothing of those to come
                self._pause = min(max(self._pause, cost / SHARE), LONGEST)

    def _interval(self) -> float:
        """To the next look, at least: each step more until its outcome is known costs a step until the
        decision.
        """
        if not self._ready:
            return QUICK
        if self.decision is None or self.decision.is_settled:
            return SLOW
        step = self.seconds / max(self.steps, 1)
        longest = QUICK if any(not one.lever.inside for one in self.running) else SLOW
        return min(max(EARLY if self.steps < EARLY_STEPS else QUICK, step), longest)

    def look(self) -> None:
        """Takes what happened since the last look, and plans on."""
        self._find_files()
        if not self._files or self._left_alone:
            return
        if not self._ready:
            self._recognise()
        if self._ready:
            if self._joined is not None and (steps := self._joined.new()) is not None:
                self._take(steps)
            self._plan()
            self._note_held()

    def _note_fixed(self) -> None:
        """Numbers that the program fixes win over those of the lever `threads`."""
        count = max((file.fixed for file in self._files.values()), default=0)
        if count and any(one.lever.number == THREADS_LEVER for one in self.running):
            self.notes.append(
                f"threads: the program fixed the number of threads itself, {plural(count, 'time')}; such "
                "regions stay as they are"
            )

    def _note_held(self) -> None:
        """A rank that ends takes its number along."""
        for process, held in self._access.board.held().items() if self._access is not None else ():
            self._held[process] = max(held, self._held.get(process, 0.0))

    def _find_files(self) -> None:
        for path in self._new_files():
            if self._ready:
                self._leave_alone("ranks started after the others: the program runs on as it is")
                return
            self._files[path] = StepFile(path)
        gone = sum(file.process == 0 for file in self._files.values())
        if not 0 < gone < len(self._files):
            self._gone_since = None
        elif self._gone_since is None:
            self._gone_since = time.monotonic()
        elif time.monotonic() - self._gone_since > 1 and self._ready:
            self._leave_alone("ranks ended before the others: the program runs on as it is")

    def _new_files(self) -> list[Path]:
        """Files of steps that are not known yet. The folder is read where it changed: that takes most of the
        time of a look.
        """
        folder, prefix = self._board_path.parent, f"{self._board_path.name}.steps-"
        changed = folder.stat().st_mtime
        if changed == self._folder_changed:
            return []
        self._folder_changed = changed if time.time() - changed > FILE_TIME else None
        names = (name for name in os.listdir(folder) if name.startswith(prefix))
        return [
            path
            for name in sorted(names)
            if (path := folder / name) not in self._files and path.suffix != ".draft"
        ]

    def _leave_alone(self, why: str) -> None:
        self.notes.append(why)
        self._left_alone = True
        for file in self._files.values():
            file.stop_learning()
            file.plan(file.step_count + 1, (), 0)
        self._apply_outside(AS_IT_IS)

    def _paths(self) -> list[Path]:
        """The first rank's file first."""
        return sorted(self._files, key=lambda path: (self._files[path].rank, path))

    def _recognise(self) -> None:
        files = [self._files[path] for path in self._paths()]
        if all(file.is_recognised for file in files):
            steps = min(file.step_count for file in files)
            if steps < self._warm_up:
                return
            rate = self._rate(steps)
            if rate is None:
                return
            self.recognised_by = "marks" if files[0].by_marks else "calls"
            for file in files:
                file.stop_learning()
            self._begin(files, rate)
            return
        if any(file.by_marks for file in files):
            return
        calls = min(file.call_count for file in files)
        if calls >= MOST_CALLS:
            self._leave_alone(
                "no steps can be found in the calls of the program: mark them by MPI_Pcontrol(1); it runs on "
                "as it is"
            )
        elif calls >= self._tried_at:
            self._tried_at = 2 * calls
            anchors = [find_anchor(file.calls()) for file in files]
            for file, anchor in zip(files, anchors, strict=True):
                if anchor is not None and None not in anchors:
                    file.recognise(*anchor)

    def _rate(self, steps: int) -> float | None:
        """B/s of the messages that enter or leave this node, whichever is more, once so many steps were seen
        that it is known; 0 without a model, which alone needs it.
        """
        if self._model.document is None:
            return 0.0
        with Board(self._board_path) as board:
            ranks = board.ranks()
        moved = sum(rank.moved_out for rank in ranks), sum(rank.moved_in for rank in ranks)
        now = NodeTraffic(time.monotonic(), steps, *moved)
        if self._traffic_before is None:
            self._traffic_before = now
        before = self._traffic_before
        if now.steps < before.steps + WATCHED:
            return None
        return max(now.sent - before.sent, now.received - before.received) / (now.at - before.at)

    def _begin(self, files: Sequence[StepFile], rate: float) -> None:
        processes = tuple(file.process for file in files)
        board = Board(self._board_path)
        document, reason = self._model
        access = LeverAccess(
            program=self._program,
            board=board,
            keeper=self._keeper,
            processes=processes,
            gains=None if document is None else PredictedGains(document, rate),
            no_model=reason,
        )
        self._access = access
        for lever in self._levers:
            self._try_lever(lever, access)
        self.decision = self._make_decision(self.running, files[0].threads, processes)
        by_rank = {path: self._files[path] for path in self._paths()}
        self._joined = RankSteps(by_rank, self.recognised_by == "marks")
        self._next = files[0].step_count + 1
        files[0].lead(True)
        self._ready = True

    def _try_lever(self, lever: Lever, access: LeverAccess) -> None:
        readings = []
        for setting in lever.settings(self._program):
            try:
                reading = lever.calibrate(setting, access)
                predicted = lever.predicted(setting, access)
                readings.append(msgspec.structs.replace(reading, predicted=predicted))
            except ElbowroomError as error:
                self.notes.append(f"{lever.name}: not used: {error.sentence()}")
                return
        if any(one.works for one in readings):
            self.running.append(RunningLever(lever, tuple(readings)))
        else:
            shown = dict.fromkeys(f"{one.setting}: {one.got}" for one in readings)
            self.notes.append(f"{lever.name}: not used: {'; '.join(shown)}")

    def _take(self, steps: JoinedSteps) -> None:
        """Steps that all ranks have completed."""
        self.steps += len(steps.numbers)
        self.seconds += float(steps.seconds.sum())
        if self._leader is None:
            self._choose_leader(steps)
        known = steps.arms[steps.arms != MIXED]
        self.switches += int(np.count_nonzero(np.diff(known, prepend=self._last_arm)))
        self._last_arm = int(known[-1]) if len(known) else self._last_arm
        self.got_threads |= steps.got_threads()
        self._note_worst(steps)
        if self.decision is not None:
            self._take_blocks(steps, self.decision)

    def _choose_leader(self, steps: JoinedSteps) -> None:
        """The rank that begins its steps last: a setting that another one writes would act on the end of the
        step before.
        """
        paths = self._paths()
        self._leader = paths[steps.last_rank()]
        for path in paths:
            self._files[path].lead(path == self._leader)
        if self._leader != paths[0]:
            self._forget_plans()

    def _take_blocks(self, steps: JoinedSteps, decision: Decision) -> None:
        """The blocks that are complete by these steps, which have to have run under their arms."""
        has_threads = any(one.lever.number == THREADS_LEVER for one in self.running)
        while self._planned:
            first, block = self._planned[0]
            last = first + block.steps - 1
            begin, end = np.searchsorted(steps.numbers, (first, last + 1))
            is_complete = steps.numbers[-1] >= last
            is_lost = is_complete and (end == begin or steps.numbers[end - 1] != last)
            if is_lost or (steps.arms[begin:end] != decision.arms[block.arm].number).any():
                self._forget_plans()
                return
            self._taken += [
                steps.observation(at, has_threads)
                for at in range(begin, end)
                if steps.begins[at] >= self._outside_since
            ]
            if not is_complete:
                return
            if not self._taken:
                self._forget_plans()
                return
            self._planned.popleft()
            taken, self._taken = self._taken, []
            decision.add(block, taken)

    def _note_worst(self, steps: JoinedSteps) -> None:
        seconds = np.where(steps.arms == MIXED, 0.0, steps.seconds)
        at = int(np.argmax(seconds))
        if self.decision is not None and seconds[at] > (self.worst[0] if self.worst else 0.0):
            arms = {settings.number: name for name, settings in self.decision.arms.items()}
            self.worst = float(seconds[at]), arms.get(int(steps.arms[at]), AS_IT_IS)

    def _forget_plans(self) -> None:
        """Steps were lost, or ran under another arm than planned: begin again with those to come."""
        self._planned.clear()
        self._taken = []
        self._next = 0
        if self.decision is not None:
            self.decision.forget_plans()

    def _plan(self) -> None:
        """Plans steps that may begin before the next look but one, as many as can be judged then."""
        if self.decision is None:
            return
        current = self._files[self._paths()[0]].step_count + 1
        step = self.seconds / max(self.steps, 1)
        between = math.ceil(self._pause / step) if step > 0 else 0
        skipped = 0
        if not self._planned:
            # The ranks keep so many steps only.
            self._next = max(self._next, current + 1 + max(0, between - STEPS // 2))
            skipped = self._next - current
        arms: list[int] = []
        first = self._next
        while self._next < current + 2 + 2.5 * between and self._can_plan():
            block = self.decision.next_block()
            self._planned.append((self._next, block))
            self._next += block.steps
            arms += [self.decision.arms[block.arm].number] * block.steps
        self._push_arms(self.decision)
        self._follow_plan(current)
        if self.decided_at is None and self.decision.chosen != AS_IT_IS:
            self.decided_at = current
        rest = self.decision.arms[self.decision.chosen].number
        if arms:
            offsets = self._joined.offsets if self._joined is not None else {}
            for path, file in self._files.items():
                file.plan(first + offsets.get(path, 0), arms, rest, skipped)

    def _can_plan(self) -> bool:
        if not self._planned:
            return True
        return len(self._planned) < MOST_BLOCKS and self._next - self._planned[0][0] < STEPS // 4

    def _push_arms(self, decision: Decision) -> None:
        for name, arm in decision.arms.items():
            if self._pushed.get(name) == arm:
                continue
            self._pushed[name] = arm
            for file in self._files.values():
                if arm.table:
                    file.set_table(arm.table, arm.threads)
                file.set_arm(arm.number, arm.settings)

    def _follow_plan(self, current: int) -> None:
        """The levers outside of the ranks act as the block of the running step says."""
        running = next(
            (block for first, block in self._planned if first <= current < first + block.steps), None
        )
        if running is not None:
            self._apply_outside(running.arm)
        elif self.decision is not None:
            self._apply_outside(self.decision.chosen)

    def _apply_outside(self, arm: str) -> None:
        """Acts with the levers outside of the ranks; one that cannot act any more is not used again."""
        for one in [one for one in self.running if not one.lever.inside]:
            lever = one.lever
            settings = dict(part.partition("=")[::2] for part in parts_of(arm))
            wanted = settings.get(lever.name, PLACEBO if PLACEBO in settings else AS_IT_IS)
            if self._access is None or self._outside.get(lever.name, AS_IT_IS) == wanted:
                continue
            try:
                lever.set(wanted, self._access)
            except ElbowroomError as error:
                self.running.remove(one)
                self._give_up(lever, f"{lever.name}: is gone: {error.sentence()}")
            self._outside[lever.name] = wanted
            self._outside_since = time.monotonic()

    def _give_up(self, lever: Lever, why: str) -> None:
        for setting in lever.settings(self._program):
            if self.decision is not None:
                self.decision.give_up(arm_of(lever, setting), why)


def arm_of(lever: Lever, setting: str) -> str:
    """The arm of an experiment that has a lever at a setting."""
    return f"{lever.name}={setting}"
