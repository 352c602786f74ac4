"""A task-based runtime system, and computational kernels: sections 5 and 6 of Denis et al. (2021), 5.4 and
5.5 of Swartvagher's thesis (2022).
"""

from __future__ import annotations

from elbowroom.experiments.common.sentences import kept_text
from elbowroom.experiments.kernels.results import TURNS, TaskRow, rows
from elbowroom.points.program import RuntimeProgram
from elbowroom.results.family import suffering
from elbowroom.results.judgement import Judgement, larger
from elbowroom.studies import needs
from elbowroom.studies.drawings import all_of, panels, polling_over_sizes
from elbowroom.studies.evidence import Evidence
from elbowroom.studies.judgements import rule, verdict_of_findings
from elbowroom.studies.study import Exhibit, Measurement, Outcome, Statement, outcome

OVERHEAD, POLLING, POLLING_SIZES, KERNELS = "runtime-overhead", "polling", "polling-sizes", "kernels"
POLLING_STARPU = "polling-through-starpu"

MEASUREMENTS = (
    Measurement(
        name=OVERHEAD,
        plan="runtime-overhead",
        quick={"sizes": "4,16KiB,1MiB,4MiB,64MB"},
    ),
    Measurement(name=POLLING, plan="polling", quick={"n": "1,all"}),
    Measurement(
        name=POLLING_SIZES,
        plan="polling",
        settings={"n": "all", "sizes": "4,16,64,256,1KiB,4KiB,16KiB"},
        quick={"sizes": "4,1KiB"},
    ),
    Measurement(
        name=POLLING_STARPU,
        plan="runtime-overhead",
        settings={
            "sizes": "4,64,1KiB,16KiB",
            "backoffs": "2,32,10000",
            "scheduler": "eager",
            "comp_nodes": "near",
            "comm_cores": "near",
        },
        quick={"sizes": "4"},
    ),
    Measurement(
        name=KERNELS,
        plan="kernels",
        settings={"tasks": "cg,gemm"},
        quick={"n": "1,half,all", "builds": "openmp"},
    ),
)

NETWORK = (needs.network,)
WORKERS = (needs.network, needs.computing_cores(2))


@rule
def large_messages_alike(evidence: Evidence) -> Outcome:
    """Whether messages of 64 MB keep their bandwidth through StarPU, while small ones are slowed down."""
    points = [item for item in evidence.points(OVERHEAD) if isinstance(item.workload, RuntimeProgram)]
    kept = [item for item in points if item.comm.kept is not None]
    large = [item for item in kept if item.size >= 64_000_000]
    if not large:
        raise evidence.missing(OVERHEAD)
    ours = "; ".join(f"64 MB keeps {kept_text(item.comm.kept)}" for item in large[:2])
    if suffering(large, "comm"):
        return Outcome(judgement="refuted", ours=ours)
    small = [item for item in kept if item.size < 64_000_000]
    if not suffering(small, "comm"):
        why = "StarPU does not slow small messages down either"
        return Outcome(judgement="undecided", ours=ours, why=why)
    sure = all(item.comm.kept is not None and item.comm.kept.above(0.95) for item in large)
    return outcome("confirmed" if sure else "undecided", ours, "an interval includes 0.95")


def _rows(evidence: Evidence, task: str) -> list[TaskRow]:
    """The rows of a task; NotMeasuredError without any."""
    table = [row for row in rows(evidence.points(KERNELS)) if row.task == task and row.kept is not None]
    if table:
        return table
    raise evidence.missing(KERNELS)


@rule
def loses_more_with_cores(evidence: Evidence) -> Outcome:
    """Whether sends keep less beside the most computing cores than beside the fewest, of CG."""
    table = _rows(evidence, "cg")
    few, many = min(table, key=lambda row: row.n), max(table, key=lambda row: row.n)
    if few.n == many.n:
        return Outcome(judgement="not tested", why="one number of computing cores here")
    ours = f"CG keeps {kept_text(few.kept)} with {few.n} cores, {kept_text(many.kept)} with {many.n}"
    if few.takes_turns or many.takes_turns:
        return Outcome(judgement="undecided", ours=ours, why=TURNS)
    return Outcome(judgement=larger(few.kept, many.kept), ours=ours)


@rule
def keeps(evidence: Evidence, task: str, least: float, most: float) -> Outcome:
    """Whether sends beside a task keep between two limits at the most computing cores."""
    table = _rows(evidence, task)
    last = max(row.n for row in table)
    chosen = [row for row in table if row.n == last]
    ours = "; ".join(f"{row.name} keeps {kept_text(row.kept)} with {row.n} cores" for row in chosen)
    if any(row.takes_turns for row in chosen):
        return Outcome(judgement="undecided", ours=ours, why=TURNS)
    inside = [row.kept is not None and row.kept.above(least) and row.kept.below(most) for row in chosen]
    outside = [row.kept is not None and (row.kept.below(least) or row.kept.above(most)) for row in chosen]
    judgement: Judgement = "confirmed" if all(inside) else "undecided"
    if any(outside):
        judgement = "refuted"
    return outcome(judgement, ours, "the interval reaches beyond the limits")


@rule
def waits_longer(evidence: Evidence) -> Outcome:
    """Whether cores wait for memory longer in CG than in GEMM, by counters: a model that computes the share
    from the arithmetic intensity cannot show it.
    """
    cg, gemm = _rows(evidence, "cg"), _rows(evidence, "gemm")
    pairs = [(one, other) for one in cg for other in gemm if (one.n, one.build) == (other.n, other.build)]
    known = [(one, other) for one, other in pairs if one.stalled is not None and other.stalled is not None]
    if not known:
        return Outcome(judgement="not tested", why="the share of waiting cores is unknown")
    one, other = max(known, key=lambda pair: pair[0].n)
    if one.source == "modelled" or other.source == "modelled":
        ours = f"{one.stalled:.0%} in CG and {other.stalled:.0%} in GEMM, modelled"
        why = "no counter of stalls can be read here, and a model of the waiting cannot confirm itself"
        return Outcome(judgement="not tested", ours=ours, why=why)
    longer, shorter = one.waiting, other.waiting
    if longer is None or shorter is None:
        return Outcome(judgement="undecided", why="the share was counted in one repetition only")
    ours = f"{longer.value:.0%} ({longer.text('.0%')}) in CG and {shorter.value:.0%} ({shorter.text('.0%')})"
    ours += f" in GEMM, measured with {one.n} cores"
    return outcome(larger(longer, shorter), ours, "the shares of repetitions overlap")


CLAIMED = ("polling-claim-pool-4-", "polling-claim-starpu-4-")
ADDED = ("polling-pool-4-", "polling-starpu-4-")
"""Findings on messages of 4 B: what is judged, and its numbers."""

SMALLEST = (
    "confirmed if the interval of the added latency is above 0, refuted if below or no loss is possible"
)
SIZES = (
    "confirmed if it shows at the largest size below 64 MB, refuted if it certainly does not at a smaller one"
)
NODES = "confirmed if the intervals with data on the thread's node are below those with data on another"
LARGE = "confirmed if 64 MB keep more than 0.95 with their interval, and smaller messages suffer"
FREQUENT = "as in docs/guide/polling.md: the highest polling rate suffers, significantly more than the lowest"
RARE = "as in docs/guide/polling.md: frequent polls suffer, and the rarest do not"

OVERHEAD_EXHIBIT = Exhibit(
    label="5.2",
    title="Overhead of the runtime system",
    runs=(OVERHEAD,),
    draw=panels(OVERHEAD, names="runtime-"),
    differs="measured with paused workers, and beside workers that poll, which is StarPU's default",
    statements=(
        Statement(
            text="messages through StarPU take longer than by MPI",
            section="5.2",
            paper="+38 us on henri, +23 us on billy, +45 us on pyxis",
            judge=verdict_of_findings(OVERHEAD, "overhead-"),
            criterion=SMALLEST,
        ),
        Statement(
            text="the difference shows in the bandwidth of messages below 64 MB",
            section="5.2",
            paper="noticeable below 64 MB",
            judge=verdict_of_findings(OVERHEAD, "vanishes-"),
            criterion=SIZES,
        ),
        Statement(
            text="StarPU has no other effect on the bandwidth of large messages",
            section="5.3",
            paper="not more than previously observed",
            judge=large_messages_alike(),
            criterion=LARGE,
        ),
    ),
)

FIGURE_8 = Exhibit(
    label="Fig. 8",
    title="Impact of data locality and thread placement on network latency with StarPU",
    runs=(OVERHEAD,),
    draw=panels(OVERHEAD, names="runtime-placement"),
    statements=(
        Statement(
            text="the latency is lowest with data and communication thread on the same NUMA node",
            section="5.3",
            paper="a remote access more if they are not",
            judge=verdict_of_findings(OVERHEAD, "placement"),
            criterion=NODES,
            needs=(needs.two_nodes,),
        ),
    ),
)

FIGURE_9 = Exhibit(
    label="Fig. 9",
    title="Impact of polling workers on network latency",
    runs=(POLLING, POLLING_SIZES, POLLING_STARPU),
    draw=all_of(
        polling_over_sizes(POLLING_SIZES), panels(POLLING_STARPU, names=("runtime-overhead", "runtime-added"))
    ),
    differs="also by MPI beside the workers, where nothing else of StarPU is in the way of messages",
    section="5.4",
    judged_with=WORKERS,
    statements=(
        Statement(
            text="the latency is higher when workers poll more often",
            paper="on henri; no effect on billy and pyxis",
            judge=verdict_of_findings(POLLING, CLAIMED, quote=ADDED),
            criterion=FREQUENT,
        ),
        Statement(
            text="a long period between two polls is equivalent to paused workers",
            paper="10000 nops: no effect",
            judge=verdict_of_findings(POLLING, CLAIMED, "rare", quote=ADDED),
            criterion=RARE,
        ),
        Statement(
            text="messages through StarPU take longer when workers poll more often",
            paper="on henri; no effect on billy and pyxis",
            judge=verdict_of_findings(POLLING_STARPU, "backoffs-"),
            criterion=(
                "confirmed if 4 B take longer than beside paused workers with back-off 2, by more than 5 % "
                "with the whole interval; refuted if by less"
            ),
        ),
        Statement(
            text="messages through StarPU take no longer with rare polls than with paused workers",
            paper="10000 nops: no effect",
            judge=verdict_of_findings(POLLING_STARPU, "backoffs-", "rare"),
            criterion=(
                "the same with back-off 10000: confirmed if by less than 5 %, and frequent polls take longer"
            ),
        ),
    ),
)

FIGURE_10 = Exhibit(
    label="Fig. 10",
    title="Network performance and stalls of conjugate gradients and matrix products",
    runs=(KERNELS,),
    draw=panels(KERNELS, names="kernels-"),
    differs="programs of this project with OpenBLAS; the paper's were built with Intel MKL",
    section="6",
    statements=(
        Statement(
            text="the more cores compute, the less bandwidth sends keep",
            paper="CG from 1 to 0.1, GEMM from 1 to 0.8",
            judge=loses_more_with_cores(),
            criterion="confirmed if CG's sends keep less with the most cores than with the fewest",
            needs=NETWORK,
        ),
        Statement(
            text="CG's sends lose up to 90 %",
            paper="keep 0.1 with 35 cores",
            judge=keeps("cg", 0.0, 0.5),
            criterion="confirmed if they keep less than 0.5 with the most cores, refuted if more",
            needs=NETWORK,
        ),
        Statement(
            text="GEMM's sends lose at most 20 %",
            paper="keep 0.8 with 35 cores",
            judge=keeps("gemm", 0.75, 2.0),
            criterion="confirmed if they keep more than 0.75 with the most cores, refuted if less",
            needs=NETWORK,
        ),
        Statement(
            text="sends lose more beside CG than beside GEMM",
            paper="0.1 against 0.8",
            judge=verdict_of_findings(KERNELS, "kernels-claim"),
            criterion="confirmed if GEMM's interval is above CG's, and one of them suffers",
            needs=NETWORK,
        ),
        Statement(
            text="cores wait for memory longer in CG than in GEMM",
            paper="70 % and 20 % of the stalls, by counters",
            judge=waits_longer(),
            criterion=(
                "confirmed if the range of CG's repetitions is above that of GEMM's with most cores, refuted "
                "if below, by counters; the model of the waiting decides nothing"
            ),
            observes="counters",
        ),
    ),
)

EXHIBITS = (OVERHEAD_EXHIBIT, FIGURE_8, FIGURE_9, FIGURE_10)
