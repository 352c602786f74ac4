"""What a guard does next: which arm the next block of steps has, from what the steps before it took.

First the search for numbers of threads, where that lever is used, then an experiment for each lever: rounds
of the reference, the placebo and each setting. The reference is the program as it is, with the settings of
the levers before that pay. In the end come steps under all that pays, with a round from time to time. Where
steps become much longer or shorter for good, the program is in another phase, and all begins again. Pure: no
clock, no program.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

import msgspec

from elbowroom.guard.experiment import AS_IT_IS, ERROR, HARM, PLACEBO, OnlineExperiment, Verdict
from elbowroom.guard.thread_search import StepObservation, ThreadSearch
from elbowroom.stats.interval import Interval

BLOCK_SECONDS = 0.002
"""A block of steps takes at least this long: much longer than levers inside the ranks take to act."""
BUDGET = 0.005
"""The share of the program's time that experiments may cost, after the first steps."""
ALLOWANCE = 4
"""Steps that they may cost before that."""
BETWEEN_ROUNDS = 12
"""Blocks under a setting that pays for each block of a round that is not under it."""
RECENT = 8
"""Rounds by which a setting that was kept is seen to harm: all but one of them."""
RECENT_STEPS = 15
CHANGED = 1.3
"""Where all of RECENT_STEPS take this much longer, or shorter, than before, the program has changed."""
ROUNDS_OF_LEVER = 76
"""After these, where others wait, a lever of which nothing is known is left: the eighth look or so."""
FIRST_PHASE = 0.8
"""The share of the error that its first phase has; the j-th one has 1 / (j (j - 1)) of the rest."""

THREADS_LEVER = 0
THREADS_ARM = "threads=by phase"
_TRIAL_ARMS = range(44, 64)
_WITH = " + "
_FINAL_TABLE = 31


class Block(NamedTuple):
    """So many steps under an arm; `round`: which one it is of, or which trial (-1: neither)."""

    arm: str
    steps: int
    round: int = -1


class ArmSettings(NamedTuple):
    """What an arm is: its number in the file of steps, the settings of levers by their numbers, and the
    number of threads by phase, of its `table`.
    """

    number: int
    settings: Mapping[int, int]
    table: int = 0
    threads: Mapping[int, int] = {}


class LeverResult(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a lever: compared with the arm `reference`, its best setting `arm` (else the one that
    comes nearest; null before the first look) saves the share `gain` of a step.
    """

    lever: str
    reference: str
    verdict: Verdict
    arm: str | None
    gain: Interval | None


def parts_of(arm: str) -> tuple[str, ...]:
    """The settings, LEVER=SETTING, that an arm consists of."""
    return tuple(arm.split(_WITH))


def result_of(experiment: OnlineExperiment) -> LeverResult:
    """That of the lever which an experiment tests."""
    results = [one for one in experiment.results if PLACEBO not in parts_of(one.arm)]
    known = [one for one in results if one.gain is not None]
    best = experiment.best or max(known, key=lambda one: one.gain.value if one.gain else 0.0, default=None)
    return LeverResult(
        lever=parts_of(results[0].arm)[-1].partition("=")[0] if results else "",
        reference=experiment.reference,
        verdict=experiment.verdict,
        arm=None if best is None else best.arm,
        gain=None if best is None else best.gain,
    )


class Decision:
    """Decides for one run of a program. `acting`: the arms of the levers, LEVER=SETTING, in the order in
    which the levers are tested, each the settings of levers by number; `placebo`: those under which all
    levers write what they read.
    """

    def __init__(
        self,
        acting: Mapping[str, Mapping[int, int]],
        placebo: Mapping[int, int],
        *,
        search: ThreadSearch | None = None,
        budget: float = BUDGET,
        seed: int = 0,
        earlier: Mapping[str, Sequence[float]] | None = None,
        threads: Mapping[int, int] | None = None,
        block_seconds: float = BLOCK_SECONDS,
        until_round: int = 0,
    ) -> None:
        """Of earlier runs: `earlier`, the values of their rounds by arm; `threads`, the numbers that were
        chosen, by phase, in place of a search; `until_round`, as below.
        """
        self.arms = {AS_IT_IS: ArmSettings(0, {}), PLACEBO: ArmSettings(1, placebo)}
        for number, (name, settings) in enumerate(acting.items(), start=2):
            self.arms[name] = ArmSettings(number, settings)
        self._arms_of: dict[str, list[str]] = {}
        for name in acting:
            self._arms_of.setdefault(name.partition("=")[0], []).append(name)
        self.search = search if threads is None else None
        self._searching = self.search is not None
        self.notes: list[str] = []
        self.experiments: list[OnlineExperiment] = []
        self._seed, self._earlier, self._budget = seed, earlier, budget
        self._block_seconds = block_seconds
        self._base: deque[float] = deque(maxlen=RECENT_STEPS)
        self._elapsed = self._spent = 0.0
        self._trials = self._rounds = 0
        self._after_trial = False
        self._pending: deque[Block] = deque()
        self._open: dict[int, dict[str, float]] = {}
        self._sizes: dict[int, int] = {}
        self._kept = until_round
        self._recent: deque[float] = deque(maxlen=RECENT)
        self._is_given_up = False
        self._watched = AS_IT_IS
        self._usual: float | None = None
        self._latest: deque[float] = deque(maxlen=RECENT_STEPS)
        self._earlier_phase: list[OnlineExperiment] = []
        self.phases = 1
        if threads is not None:
            self._add_threads(threads)
        if self.search is None:
            self._begin_experiments()

    @property
    def experiment(self) -> OnlineExperiment | None:
        """The one that is going on, or the last one."""
        return self.experiments[-1] if self.experiments else None

    @property
    def reference(self) -> str:
        """The arm with which settings are compared now."""
        return AS_IT_IS if self.experiment is None else self.experiment.reference

    @property
    def verdict(self) -> Verdict:
        """What is known so far: of the latest phase of the program, else of one before."""
        if self._telling:
            return self._verdict_of(self._telling)
        searched = self.search is not None and self.search.is_done and self.search.is_clear
        return "off" if searched and not self._arms_of else "cannot say"

    @property
    def gain(self) -> Interval | None:
        """That of all settings that pay together, else of the one that comes nearest to it; None before the
        first look. The low ends of all levers hold together (Bonferroni), so that of the product does.
        """
        results = self.results
        gains = [one.gain for one in results if one.verdict == "pays" and one.gain is not None]
        if not gains:
            known = [one.gain for one in results if one.gain is not None]
            return max(known, key=lambda gain: gain.value, default=None)
        low, value, high = (
            1 - math.prod(1 - getattr(gain, end) for gain in gains) for end in ("low", "value", "high")
        )
        return Interval(value=value, low=low, high=high)

    @property
    def results(self) -> tuple[LeverResult, ...]:
        """Of each lever that was tested."""
        return tuple(one for one in map(result_of, self._telling) if one.lever)

    @property
    def placebo(self) -> Interval | None:
        """What the placebo gained."""
        return self._telling[0].placebo if self._telling else None

    @property
    def chosen(self) -> str:
        """The arm that is kept, or AS_IT_IS."""
        if self.experiment is None or self._is_given_up:
            return AS_IT_IS
        best = self.experiment.best
        return self.reference if best is None else best.arm

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing more to be found for now."""
        if self.experiment is None:
            return self.search is not None and self.search.is_done
        is_last = len(self.experiments) >= len(self._arms_of)
        return is_last and self.experiment.is_decided and not self._pending

    @property
    def until_round(self) -> int:
        """Blocks under the setting that is kept before the next round: 0 where one is not complete."""
        return 0 if self._open else self._kept

    @property
    def _telling(self) -> list[OnlineExperiment]:
        """The experiments that the verdict is of."""
        before = self._earlier_phase
        return before if before and self._verdict_of(self.experiments) == "cannot say" else self.experiments

    def _verdict_of(self, experiments: Sequence[OnlineExperiment]) -> Verdict:
        verdicts = {experiment.verdict for experiment in experiments}
        if "pays" in verdicts:
            return "pays"
        return "off" if verdicts == {"off"} and len(experiments) >= len(self._arms_of) else "cannot say"

    def next_block(self) -> Block:
        """What runs next. A block that awaits nothing may be planned before the ones before it have run."""
        if self._spent > self._budget * self._elapsed + ALLOWANCE * self._step():
            return self._filler(self.chosen)
        if self.search is not None and self._searching:
            return self._next_trial(self.search)
        return self._next_of_experiment()

    def forget_plans(self) -> None:
        """What was planned and did not run will not run."""
        self._pending.clear()
        self._open.clear()
        if self.search is not None:
            self.search.forget_plans()

    def add(self, block: Block, steps: Sequence[StepObservation]) -> None:
        """The steps of a block that has run."""
        seconds = sum(step.seconds for step in steps) / len(steps)
        self._elapsed += sum(step.seconds for step in steps)
        if block.arm == self.reference:
            self._base.extend(step.seconds for step in steps)
        elif self._base and block.round >= 0:
            self._spent += (seconds - sum(self._base) / len(self._base)) * len(steps)
        if self.search is not None and self._searching:
            for step in steps:
                self.search.add(step)
            if self.search.is_done:
                self._end_search(self.search)
        elif block.round >= 0 and self.experiment is not None and block.round in self._open:
            self._open[block.round][block.arm] = seconds
            if len(self._open[block.round]) == self._sizes[block.round]:
                self._close_round(self._open.pop(block.round), self.experiment)
        self._watch_phase(block.arm, steps)

    def give_up(self, arm: str, why: str) -> None:
        """A setting whose lever does not act any more."""
        left = () if self.experiment is None else self.experiment.left
        is_known = False
        for other in left:
            if arm in parts_of(other) and self.experiment is not None:
                self.experiment.give_up(other)
                is_known = True
        waiting = list(self._arms_of.items())[len(self.experiments) :]
        for _, arms in waiting:
            if arm in arms:
                arms.remove(arm)
                is_known = True
        if is_known:
            self.notes.append(why)
        self._go_on()

    def _next_trial(self, search: ThreadSearch) -> Block:
        trial = None if self._after_trial else search.next_trial()
        self._after_trial = trial is not None
        if trial is None:
            return Block(AS_IT_IS, 1)
        place = self._trials % len(_TRIAL_ARMS)
        name = f"trial {place}"
        self.arms[name] = ArmSettings(_TRIAL_ARMS[place], {THREADS_LEVER: 2 + place}, 2 + place, trial)
        self._trials += 1
        return Block(name, 1, self._trials)

    def _end_search(self, search: ThreadSearch) -> None:
        self._searching = False
        if search.got:
            self.notes.append(
                "threads: the program fixes the number of threads of some regions; these stay as they are"
            )
        if search.best:
            self._add_threads(search.best)
        else:
            doubt = "" if search.is_clear else " for certain: its trials differ"
            self.notes.append(f"threads: no other number of threads makes any phase shorter{doubt}")
        self._begin_experiments()

    def _add_threads(self, threads: Mapping[int, int]) -> None:
        lever = THREADS_ARM.partition("=")[0]
        self._arms_of = {lever: [THREADS_ARM], **self._arms_of}
        there = self.arms.get(THREADS_ARM)
        number = self._free_number() if there is None else there.number
        self.arms[THREADS_ARM] = ArmSettings(number, {THREADS_LEVER: _FINAL_TABLE}, _FINAL_TABLE, threads)

    def _free_number(self) -> int:
        return 1 + max(arm.number for arm in self.arms.values() if arm.number not in _TRIAL_ARMS)

    def _arm_on(self, reference: str, arm: str) -> str:
        """The arm that has the settings of both; one of `placebo` that of the levers that do not act."""
        if reference == AS_IT_IS:
            return arm
        name = f"{reference}{_WITH}{arm}"
        kept, more = self.arms[reference], self.arms[arm]
        number = self._free_number() if name not in self.arms else self.arms[name].number
        settings = {**more.settings, **kept.settings}
        table, threads = kept.table or more.table, kept.threads or more.threads
        self.arms[name] = ArmSettings(number, settings, table, threads)
        return name

    def _begin_experiments(self) -> None:
        if self._arms_of or self.search is None:
            self._begin_experiment()

    def _begin_experiment(self) -> None:
        """That of the next lever, on the arm that is kept."""
        reference = self.chosen
        levers = list(self._arms_of.values())
        acting = levers[len(self.experiments)] if levers else []
        if self._free_number() + len(acting) >= _TRIAL_ARMS.start:
            return
        names = [self._arm_on(reference, arm) for arm in (PLACEBO, *acting)]
        share = FIRST_PHASE if self.phases == 1 else (1 - FIRST_PHASE) / (self.phases * (self.phases - 1))
        if reference != self.reference:
            self._base.clear()
        self.experiments.append(
            OnlineExperiment(
                names,
                seed=self._seed + self.phases + 1000 * len(self.experiments),
                error=share * ERROR,
                levers=max(len(levers), 1),
                earlier=self._earlier,
                reference=reference,
                placebo=names[0],
            )
        )
        self._go_on()

    def _go_on(self) -> None:
        """With the next lever, where there is one and nothing more is to be found of this one."""
        experiment = self.experiment
        if experiment is None or len(self.experiments) >= len(self._arms_of):
            return
        if experiment.is_decided or experiment.rounds >= ROUNDS_OF_LEVER:
            self._pending.clear()
            self._open.clear()
            self._begin_experiment()

    def _watch_phase(self, arm: str, steps: Sequence[StepObservation]) -> None:
        """Whether steps under the arm that is kept are still as long as they were when that was decided."""
        if not self.is_settled or arm != self.chosen:
            return
        if arm != self._watched:
            self._watched, self._usual = arm, None
            self._latest.clear()
        self._latest.extend(step.seconds for step in steps)
        if len(self._latest) < RECENT_STEPS:
            return
        if self._usual is None:
            self._usual = median(self._latest)
            self._latest.clear()
        elif min(self._latest) > CHANGED * self._usual or max(self._latest) < self._usual / CHANGED:
            self._begin_phase()

    def _begin_phase(self) -> None:
        """Nothing of what was found holds any more."""
        self.notes.append("the steps of the program changed: the levers were tested again")
        self.phases += 1
        if self._verdict_of(self._telling) != "cannot say":
            self._earlier_phase = self._telling
        self._usual = None
        self._latest.clear()
        self._base.clear()
        self._recent.clear()
        self._pending.clear()
        self._open.clear()
        self.experiments = []
        self._is_given_up = False
        self._earlier = None
        self._watched = AS_IT_IS
        if self.search is None:
            self._begin_experiments()
        else:
            self._arms_of.pop(THREADS_ARM.partition("=")[0], None)
            self.search = ThreadSearch(self.search.counts, self.search.own)
            self._searching = True

    def _next_of_experiment(self) -> Block:
        experiment = self.experiment
        if experiment is None or self._is_given_up:
            return self._filler(AS_IT_IS)
        if not self._pending:
            if self._kept > 0 and (self.is_settled or self.chosen != self.reference):
                self._kept -= 1
                return self._filler(self.chosen)
            order = experiment.order()
            if self.is_settled and self.chosen != AS_IT_IS and AS_IT_IS not in order:
                # Levers that were kept one by one are watched together.
                order = (AS_IT_IS, *order)[:: -1 if self._rounds % 2 else 1]
            if len(order) == 1:
                return self._filler(self.chosen)
            self._kept = BETWEEN_ROUNDS * (len(order) - 1)
            self._rounds += 1
            self._open[self._rounds] = {}
            self._sizes[self._rounds] = len(order)
            self._pending.extend(Block(arm, self._size(), self._rounds) for arm in order)
        return self._pending.popleft()

    def _close_round(self, seconds: Mapping[str, float], experiment: OnlineExperiment) -> None:
        before = {arm.arm for arm in experiment.results if arm.arm in experiment.left}
        chosen = self.chosen
        experiment.add_round(seconds)
        for arm in before - set(experiment.left):
            gain = next(one.gain for one in experiment.results if one.arm == arm)
            if gain is not None and gain.value < -HARM:
                self.notes.append(f"{arm}: costs {-gain.value:.1%} of a step; switched off for this run")
        if chosen != AS_IT_IS and {chosen, AS_IT_IS} <= set(seconds):
            self._recent.append(math.log(seconds[AS_IT_IS] / seconds[chosen]))
            if len(self._recent) == RECENT and sorted(self._recent)[-2] < -HARM:
                self._give_up_all()
                self.notes.append(f"{chosen}: does not pay any more; switched off for this run")
        self._go_on()

    def _give_up_all(self) -> None:
        """What was kept harms: of one lever, its other settings may still be tested."""
        self._is_given_up = self.reference != AS_IT_IS
        for experiment in self.experiments:
            if experiment.best is not None:
                experiment.give_up(experiment.best.arm)

    def _step(self) -> float:
        return median(self._base) if self._base else 0.0

    def _size(self) -> int:
        step = self._step()
        return 1 if step <= 0 else max(1, math.ceil(self._block_seconds / step))

    def _filler(self, arm: str) -> Block:
        return Block(arm, self._size())
