"""The causes of lost time: each with evidence that can fail, its share of a step, and what is tried.

`CAUSES` is the table. The test of a row gets the account and the profile and says how many seconds of each
step its cause costs each rank, and what shows it, or that it is not there. No second is claimed twice: what
waits for a core explains, `late-rank` does not.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist
from typing import Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.diagnose import processors, traffic
from elbowroom.diagnose.account import PARTS, Account
from elbowroom.profile.profile import Profile
from elbowroom.quantities import format_size, percent, short_time
from elbowroom.stats.interval import Interval

Floats = npt.NDArray[np.float64]
CauseName = Literal[
    "shared-core", "placement", "no-progress", "late-rank", "memory-contention", "protocol", "transport",
    "polling-thread", "computation",
]  # fmt: skip

LEAST = 0.05
"""A cause takes at least this share of a step: less is within the noise of programs without a fault on a
machine with other processes (docs/measured/zoo.md), and a repair that gains less is seldom worth it."""
SURE = 0.03
"""Its share is more than this, by a test whose error counts for all causes together."""
FAMILY_ERROR = 0.05
"""The chance that the steps of a program show any cause whose share is SURE at most."""
WAITS_ERROR, EXCESS_ERROR, STEADY_ERROR = 0.1, 0.05, 0.02
"""Parts of the waits for cores that may be among other times, as the scheduler's samples are longer than
calls: among waits for others, among what takes longer than its like, and among what like calls take."""
SIBLING_LOSS = (0.0, 0.25, 0.5)
"""What a computing thread loses to another one on its core (SMT): nothing if it waits for memory, half at
most; in between as is usual. Measured by trials only."""
REMOTE_LOSS = (0.0, 0.25, 0.5)
"""Likewise, of memory of another NUMA node."""
EAGER_GAIN = 0.5
"""About this part of the time of messages just above the eager limit is the handshake."""
FEWEST = 0.01
"""A smaller share of a step that is left without other processes is not known."""
SHORTEST = 0.1
"""Seconds of steps below which no cause is named: start-up and other processes are most of that time."""
PERSISTENT = 0.6
"""One rank is late if it causes this part of the waits; else who is late changes."""
CROWDED = 0.15
"""Share of a step that ranks wait for cores, from which on all messages are slow."""
BUSY = 0.25
"""Cores' worth of other processes from which on a machine is busy: what the program waits for is a bound."""


class StepEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """What causes are found in."""

    profile: Profile
    account: Account

    def seconds(self, *parts: str) -> Floats:
        """(steps, ranks) seconds in these parts of the account."""
        at = [PARTS.index(part) for part in parts]
        return np.asarray(self.account.seconds[:, :, at].sum(axis=2))

    def share(self, seconds: Floats) -> Interval:
        """The share of the mean step, mean of the ranks, with a 90 % interval over the steps; `seconds`:
        (steps, ranks).
        """
        each = seconds.mean(axis=1) / max(self.account.step_s, 1e-12)
        value = float(each.mean())
        if len(each) < 3:
            return Interval(value=value, low=value, high=value)
        half = float(1.645 * each.std(ddof=1) / np.sqrt(len(each)))
        return Interval(value=value, low=max(0.0, value - half), high=value + half)


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """A cause: `share` of a step that it costs, `low` to `high` (90 %), and the sentences that name it and
    show it. `ranks`: those that it is found in, empty for all; `tries`: what can be changed.
    """

    cause: CauseName
    share: float
    low: float
    high: float
    sentence: str
    evidence: str
    ranks: tuple[int, ...] = ()
    tries: str = ""


class CauseFinding(NamedTuple):
    """What the test of a cause finds: its share of a step, with the error of waits for cores in its interval,
    what to call it, and what shows it. `certain`: facts show it, and not its share.
    """

    share: Interval
    what: str
    evidence: str
    ranks: tuple[int, ...] = ()
    certain: bool = False


class CauseTest(NamedTuple):
    """A row of the table: the test (None: the cause is not there), and what can be changed."""

    cause: CauseName
    find: Callable[[StepEvidence], CauseFinding | None]
    tries: str


def waits_for_cores(evidence: StepEvidence) -> Floats:
    """(steps, ranks) seconds that ranks wait for a core, or for a rank that does."""
    for_others = evidence.seconds("late_ranks", "collective_wait") - evidence.account.uneven
    return np.asarray(evidence.seconds("scheduler") + np.maximum(for_others, 0.0))


def without_others(evidence: StepEvidence) -> float:
    """The share of a step that is left without the waits for cores that other processes cause."""
    crowd = processors.crowd_of(evidence.profile)
    theirs = 1.0 if crowd is None else 1 - _own_part(evidence, crowd)
    return max(1 - theirs * evidence.share(waits_for_cores(evidence)).value, FEWEST)


def _with_error(evidence: StepEvidence, share: Interval, part: float) -> Interval:
    """A share of a step, in which that part of the waits for cores may be too, in its interval."""
    return _wider(share, part * evidence.share(waits_for_cores(evidence)).value)


def _apart_from_others(evidence: StepEvidence, share: Interval) -> Interval:
    """A share of a step that is known but for the waits for cores that other processes cause."""
    return _wider(share, WAITS_ERROR * (1 - without_others(evidence)))


def _wider(share: Interval, doubt: float) -> Interval:
    low, high = share.ends(share.value)
    return Interval(value=share.value, low=max(0.0, low - doubt), high=high + doubt)


def _own_part(evidence: StepEvidence, crowd: processors.Crowd) -> float:
    """The part of the waits for cores that the program's own threads cause, by CPU time."""
    others = processors.others_cores(evidence.profile)
    use = processors.use_of(evidence.profile)
    if others is None or use.wall_s <= 0:
        return 1.0
    own = max(crowd.threads - crowd.cores, 0.0) * use.wall_s
    return own / max(own + others * use.wall_s, 1e-9) if others > BUSY else 1.0


def _of_cores(
    evidence: StepEvidence, part: float, what: str, text: str, ranks: tuple[int, ...]
) -> CauseFinding:
    share = _apart_from_others(evidence, evidence.share(waits_for_cores(evidence) * part))
    waited = evidence.share(evidence.seconds("scheduler"))
    return CauseFinding(
        share, what, f"{text}; they wait for a core {percent(waited.value)} of a step.", ranks
    )


def shared_core(evidence: StepEvidence) -> CauseFinding | None:
    """Ranks, or threads that compute, have fewer cores than they are, and wait for one."""
    crowd = processors.crowd_of(evidence.profile)
    if crowd is None:
        return None
    part = _own_part(evidence, crowd)
    if crowd.helpers and not processors.has_openmp(evidence.profile):
        part *= 1 - crowd.helper_share
    return _of_cores(evidence, part, "The program's threads share cores", f"{crowd.text}", crowd.ranks)


def polling_thread(evidence: StepEvidence) -> CauseFinding | None:
    """A thread that never calls MPI, and is none of OpenMP, takes the core of one that computes."""
    crowd = processors.crowd_of(evidence.profile)
    if crowd is None or not crowd.helpers or processors.has_openmp(evidence.profile):
        return None
    return _of_cores(
        evidence,
        _own_part(evidence, crowd) * crowd.helper_share,
        "A thread that does not call MPI takes the cores of computing ranks",
        f"{crowd.text}, of which helpers take {percent(crowd.helper_share)} of the time that others need",
        crowd.helpers,
    )


def placement(evidence: StepEvidence) -> CauseFinding | None:
    """Two ranks compute on one core's SMT siblings although others are free, or a rank changes its NUMA node,
    or computes longer whenever it was moved to another core.
    """
    profile = evidence.profile
    compute = evidence.seconds("compute")
    together = processors.siblings_used(profile)
    if together is not None:
        ranks = np.isin(evidence.account.ranks, together)
        return CauseFinding(
            _bounded(evidence, compute * ranks, SIBLING_LOSS),
            "Ranks share a core as SMT siblings",
            f"Ranks {together[0]} and {together[1]} compute on hardware threads of one core, and other cores "
            "are free.",
            together,
            certain=True,
        )
    remote = np.array([processors.nodes_used(profile, rank) for rank in evidence.account.ranks])
    if remote.max(initial=0.0) >= LEAST:
        rank = evidence.account.ranks[int(remote.argmax())]
        return CauseFinding(
            _bounded(evidence, compute * remote, REMOTE_LOSS),
            "Ranks change their NUMA node, and their memory does not",
            f"Rank {rank} is on another node than its usual one {percent(float(remote.max()))} of the time.",
            (rank,),
            certain=True,
        )
    return _moved(evidence, compute)


def _bounded(evidence: StepEvidence, seconds: Floats, loss: tuple[float, float, float]) -> Interval:
    low, usual, high = (evidence.share(seconds * part).value for part in loss)
    return Interval(value=usual, low=low, high=high)


def _moved(evidence: StepEvidence, compute: Floats) -> CauseFinding | None:
    """Steps in which a rank was moved between cores, against its others."""
    samples, account, rows = evidence.profile.scheduled, evidence.account, len(compute)
    if samples is None or rows < 3:
        return None
    excess, moves = np.zeros_like(compute), 0
    for at, rank in enumerate(account.ranks):
        own = (samples.rank == rank) & (samples.thread == 0)
        step = np.searchsorted(account.edges, samples.end[own] / 1e9, side="right") - 1
        changed = np.flatnonzero(np.diff(samples.cpu[own], prepend=samples.cpu[own][:1]) != 0)
        steps = np.unique(step[changed])
        steps = steps[(steps >= 0) & (steps < rows)]
        if not 0 < len(steps) < rows:
            continue
        usual = np.median(np.delete(compute[:, at], steps))
        excess[steps, at] = np.maximum(compute[steps, at] - usual, 0.0)
        moves += len(changed)
    share = _apart_from_others(evidence, evidence.share(excess))
    return CauseFinding(
        share,
        "Ranks are moved between cores",
        f"They changed their core {moves} times, and compute longer in those steps.",
    )


def no_progress(evidence: StepEvidence) -> CauseFinding | None:
    """Messages were posted early enough, and moved only inside the completing call."""
    share = _with_error(evidence, evidence.share(evidence.seconds("no_progress")), STEADY_ERROR)
    if share.value <= 0:
        return None
    site = max(evidence.account.sites, key=lambda site: site.seconds.get("no_progress", 0.0))
    return CauseFinding(
        share,
        "Messages make no progress while ranks compute",
        f"They were posted before a computation and moved in {site.call} after it.",
    )


def _less_work(evidence: StepEvidence) -> Floats:
    """(steps, ranks) seconds that each rank computes less than the one that computes longest in all steps."""
    busy = evidence.seconds("compute", "io")
    most = int(busy.mean(axis=0).argmax())
    return np.asarray(busy[:, most, None] - busy)


def _lasting(evidence: StepEvidence) -> Floats:
    """(1, ranks) seconds of the mean step by which the rank that computes longest is later than each."""
    return np.asarray(_less_work(evidence).mean(axis=0, keepdims=True))


def late_rank(evidence: StepEvidence) -> CauseFinding | None:
    """Ranks wait for others that come later for another reason than a core that they do not get: by these
    waits, or by the CPU time of ranks, whichever is surer. Without waits for cores, the waits are.
    """
    faults = (_late_by_waits(evidence), _late_by_work(evidence))
    return max((one for one in faults if one is not None), key=lambda one: _sure(one.share), default=None)


def _late_by_waits(evidence: StepEvidence) -> CauseFinding | None:
    unexplained = evidence.account.uneven
    if traffic.small_messages(evidence.profile, evidence.account) is not None:
        # Each of many calls waits for whoever is a little later: only a lasting difference is a late rank.
        unexplained = np.minimum(unexplained, _lasting(evidence))
    share = _with_error(evidence, evidence.share(unexplained), WAITS_ERROR)
    if share.value <= 0:
        return None
    by_rank: dict[int, float] = {}
    for (_, late), seconds in evidence.account.late.items():
        by_rank[late] = by_rank.get(late, 0.0) + seconds
    whole = sum(by_rank.values())
    worst = max(by_rank, key=lambda rank: by_rank[rank], default=None)
    if worst is None or worst not in evidence.account.ranks or by_rank[worst] < PERSISTENT * whole:
        text = f"{_spread(evidence)}; which one is late changes."
        return CauseFinding(share, "Ranks wait for each other", text)
    return _late(evidence, share, worst, f"{percent(by_rank[worst] / whole, digits=0)} of the waits are")


def _late_by_work(evidence: StepEvidence) -> CauseFinding | None:
    """One rank computes longer in all steps than others, which wait meanwhile, for it or for a core."""
    less = _less_work(evidence)
    waits = evidence.seconds("late_ranks", "collective_wait", "scheduler").mean(axis=0)
    share = evidence.share(less * np.clip(waits / np.maximum(less.mean(axis=0), 1e-12), 0.0, 1.0))
    computing = evidence.share(evidence.seconds("compute", "io")).value
    share = _with_error(evidence, share, EXCESS_ERROR * computing)
    if share.value <= 0:
        return None
    worst = evidence.account.ranks[int(less.mean(axis=0).argmin())]
    return _late(evidence, share, worst, "By CPU time, the waits are")


def _spread(evidence: StepEvidence) -> str:
    compute = evidence.seconds("compute").mean(axis=0)
    return f"Ranks compute {short_time(float(compute.min()))} to {short_time(float(compute.max()))} in a step"


def _late(evidence: StepEvidence, share: Interval, rank: int, waits: str) -> CauseFinding:
    """What is said of one rank that is late."""
    host = next(one.host for one in evidence.profile.ranks if one.rank == rank)
    account = evidence.account
    at = account.ranks.index(rank)
    compute, io = (float(evidence.seconds(part)[:, at].mean()) for part in ("compute", "io"))
    more = f" It is in I/O {short_time(io)} of a step." if io > LEAST * account.step_s else ""
    return CauseFinding(
        share,
        f"The other ranks wait for rank {rank}",
        f"{waits} for rank {rank} (on {host}). {_spread(evidence)}, rank {rank} {short_time(compute)}.{more}",
        (rank,),
    )


def memory_contention(evidence: StepEvidence) -> CauseFinding | None:
    """Computation or messages are slower while the other runs, at the same place of the step."""
    share = _with_error(evidence, evidence.share(evidence.seconds("contention")), EXCESS_ERROR)
    if share.value <= 0:
        return None
    return CauseFinding(
        share,
        "Messages and computation slow each other down in memory",
        "The same computation takes longer while messages are in flight.",
    )


def _in_messages(evidence: StepEvidence, part: float) -> Interval:
    return evidence.share(evidence.seconds("transfer", "library") * part)


def protocol(evidence: StepEvidence) -> CauseFinding | None:
    """Many small messages, messages just above the eager limit, or messages that come before their receive is
    posted: whichever costs most.
    """
    profile, account = evidence.profile, evidence.account
    faults = []
    during = short_time(traffic.WINDOW) if account.step_s < traffic.WINDOW else "a step"
    small = traffic.small_messages(profile, account)
    if small is not None:
        to = f"rank {small.peer}" if small.peer >= 0 else "all others"
        waits = evidence.account.uneven
        seconds = evidence.seconds("transfer", "library") + waits - np.minimum(waits, _lasting(evidence))
        faults.append(
            CauseFinding(
                evidence.share(seconds * small.share * (1 - 1 / small.number)),
                "Many small messages are sent one by one",
                f"Rank {small.rank} sends {small.number:.0f} messages of {format_size(small.bytes)} to "
                f"{to} in {during} ({small.call}); one message could have all.",
                (small.rank,),
            )
        )
    eager = traffic.above_eager_limit(profile, account)
    if eager is not None:
        faults.append(
            CauseFinding(
                _in_messages(evidence, eager.share * EAGER_GAIN),
                "Messages are just above the eager limit",
                f"A rank has {eager.per_step:.0f} messages of {format_size(eager.bytes)} in {during}, and "
                f"the limit is {format_size(eager.limit)}: each waits for a handshake.",
            )
        )
    unexpected = traffic.unexpected_messages(account)
    if unexpected is not None:
        faults.append(
            CauseFinding(
                evidence.share(evidence.seconds("library") * unexpected.share),
                "Messages come before their receive is posted",
                f"A rank has {unexpected.per_step:.0f} such messages in {during}: the library stores "
                "and searches them.",
            )
        )
    faults += _slow(evidence)
    most = max(faults, key=lambda finding: finding.share.value, default=None)
    return most and most._replace(share=_with_error(evidence, most.share, STEADY_ERROR))


def _slow(evidence: StepEvidence) -> list[CauseFinding]:
    """Messages that the library works on for longer than their bytes need."""
    slow = traffic.slow_messages(evidence.profile, evidence.account, crowded=_is_crowded(evidence))
    by_transport = traffic.slow_transport(evidence.profile) or _slow_transport(evidence)
    if slow is None or by_transport is not None:
        return []
    limit = traffic.eager_limit(evidence.profile) or traffic.SMALL
    what, why = "Messages are slow", "their datatype may not be contiguous, so that values are packed singly"
    if slow.bytes <= limit:
        what = "Receives search the messages that wait in the library"
        why = "many others have come before their receive was posted, and are never received"
    taken = f"{format_size(slow.bytes)} takes {short_time(slow.alone)} when both ends are there"
    return [CauseFinding(evidence.share(evidence.seconds("transfer") * slow.share), what, f"{taken}: {why}.")]


def transport(evidence: StepEvidence) -> CauseFinding | None:
    """Messages of a node go over TCP, or are copied twice, because a setting says so, or by their rates."""
    setting, slow = traffic.slow_transport(evidence.profile), _slow_transport(evidence)
    if setting is not None:
        why = f"The setting {setting} keeps them from shared memory with one copy."
    elif slow is not None:
        why = (
            f"When both ends are there, a small one takes {short_time(slow.small_s)}, and large ones move at "
            f"{slow.rate / 1e9:.2g} GB/s: slower than shared memory with one copy. `elbowroom doctor` lists "
            "what the node has."
        )
    else:
        return None
    share = _with_error(evidence, _in_messages(evidence, 1.0), STEADY_ERROR)
    return CauseFinding(share, "Messages take a slow way through the node", why)


def _is_crowded(evidence: StepEvidence) -> bool:
    """Ranks wait for cores so often that even the fastest tenth of like messages may have waited for one."""
    return evidence.share(waits_for_cores(evidence)).value >= CROWDED


def _slow_transport(evidence: StepEvidence) -> traffic.SlowTransport | None:
    """By rates; None where ranks wait for cores, which makes all messages slow."""
    if _is_crowded(evidence):
        return None
    return traffic.transport_by_rate(evidence.profile, evidence.account)


CAUSES: tuple[CauseTest, ...] = (
    CauseTest("shared-core", shared_core, "fewer ranks or threads, or one core for each: --bind-to core"),
    CauseTest("polling-thread", polling_thread, "move the thread to a core of its own, or let it sleep"),
    CauseTest("placement", placement, "one core for each rank: --map-by and --bind-to core, srun --cpu-bind"),
    CauseTest(
        "no-progress", no_progress, "the library's progress thread, or MPI_Test inside the computation"
    ),
    CauseTest("late-rank", late_rank, "an even distribution of the work"),
    CauseTest(
        "memory-contention", memory_contention, "fewer computing cores, other placement, or no overlap"
    ),
    CauseTest("protocol", protocol, "one message for many, receives posted early, or another eager limit"),
    CauseTest("transport", transport, "shared memory: leave the setting out"),
)
"""In the order in which they are named where two have the same share."""


def _lasted(evidence: StepEvidence) -> float:
    """Seconds of the steps; of the whole run, where the records of earlier steps are lost."""
    profile, account = evidence.profile, evidence.account
    if any(rank.lost for rank in profile.ranks):
        return profile.duration / 1e9
    return account.count * account.step_s


def _too_little(evidence: StepEvidence) -> str:
    """Why a profile is too little for any cause; "" where it is not."""
    manifest, lasted = evidence.profile.manifest, _lasted(evidence)
    if manifest is not None and manifest.own_functions:
        name = manifest.own_functions[0]
        return f"the program defines {name} itself, and calls of it were not recorded"
    if lasted < SHORTEST:
        return f"the steps took {short_time(lasted)} in all, too short for a cause; run more"
    return ""


def why_not_judged(evidence: StepEvidence) -> str:
    """A sentence where a profile without a cause cannot rule them out; "" where it can."""
    too_little = _too_little(evidence)
    if too_little:
        return f"Cannot say: {too_little}."
    waits = evidence.share(waits_for_cores(evidence)).value
    if waits >= evidence.share(evidence.seconds("compute", "io")).value:
        return (
            f"Cannot say: other processes take {percent(waits)} of a step, and no cause is certain beside "
            "them."
        )
    return ""


def _sure(share: Interval) -> float:
    """The end of an interval below `share` that all tests of a program together pass by chance with
    FAMILY_ERROR; its own low end is that of one test in twenty.
    """
    normal = NormalDist()
    wider = normal.inv_cdf(1 - FAMILY_ERROR / len(CAUSES)) / normal.inv_cdf(0.95)
    return share.value - wider * (share.value - share.ends(share.value)[0])


def find_causes(evidence: StepEvidence) -> tuple[Cause, ...]:
    """The causes with a share of a step that can be believed, the largest first; `computation` alone where
    they are ruled out, and none where they are not (`why_not_judged`).
    """
    faults, own = [], without_others(evidence)
    for test in CAUSES if not _too_little(evidence) else ():
        finding = test.find(evidence)
        if finding is None:
            continue
        share = finding.share
        low, high = share.ends(share.value)
        if finding.certain or (share.value >= LEAST * own and _sure(share) >= SURE * own):
            alone = f", and {percent(share.value / own)} without other processes" if own < 1 - BUSY else ""
            faults.append(
                Cause(
                    cause=test.cause,
                    share=share.value,
                    low=low,
                    high=high,
                    sentence=f"{finding.what}: {percent(share.value)} of a step ({percent(low)} to "
                    f"{percent(high)}){alone}.",
                    evidence=finding.evidence,
                    ranks=finding.ranks,
                    tries=test.tries,
                )
            )
    if not faults and not why_not_judged(evidence):
        return (_computation(evidence),)
    return tuple(sorted(faults, key=lambda cause: -cause.share))


def _computation(evidence: StepEvidence) -> Cause:
    computing = evidence.share(evidence.seconds("compute", "io"))
    waits = evidence.share(waits_for_cores(evidence)).value
    low, high = computing.ends(computing.value)
    shown = f"No cause takes {percent(LEAST, digits=0)} of a step."
    if waits >= LEAST:
        shown += f" Waits for cores that other processes have take {percent(waits)} of it."
    return Cause(
        cause="computation",
        share=computing.value,
        low=low,
        high=high,
        sentence=_without_fault(evidence, computing.value),
        evidence=shown,
    )


def _without_fault(evidence: StepEvidence, computing: float) -> str:
    """What is said where no cause is: from what hides causes to what rules them out."""
    account = evidence.account
    unknown = evidence.share(evidence.seconds("not_explained")).value
    if unknown >= LEAST:
        most = max(account.sites, key=lambda site: site.seconds.get("not_explained", 0.0), default=None)
        where = "" if most is None else f", most of it in {most.call}"
        return f"No fault was found, but {percent(unknown)} of a step is not explained{where}."
    moving = evidence.share(evidence.seconds("transfer", "library", "contention", "no_progress")).value
    if moving >= 2 * LEAST:
        computed = f"ranks compute {percent(computing)} of a step"
        return f"No fault was found: {computed}, and messages take {percent(moving)} at their usual speed."
    return f"Communication is not the problem: ranks compute {percent(computing)} of a step."


def disturbance(profile: Profile) -> str:
    """A sentence where other processes of the host took cores; "" where they did not, or it is not known."""
    others = processors.others_cores(profile)
    if others is None or others < BUSY:
        return ""
    return (
        f"Other processes took {others:.1f} cores of the host meanwhile: times are upper bounds, and waits "
        "for cores and for ranks may be theirs."
    )
