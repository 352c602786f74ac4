"""Langguth, Cai, Sourouri: Memory Bandwidth Contention, ICPADS 2018."""

from __future__ import annotations

from collections.abc import Mapping

from elbowroom.machine.topology import Machine
from elbowroom.studies import needs
from elbowroom.studies.drawings import panels, run_tables
from elbowroom.studies.evidence import Where
from elbowroom.studies.judgements import Curve, loss, manner
from elbowroom.studies.scaling import (
    DIFFUSION,
    RING,
    communication_costs_on_many_nodes,
    equal_at_ends,
    exchange_shrinks,
    loses,
    overlap_is_no_faster,
    predicted,
    threads_change_little,
)
from elbowroom.studies.study import Exhibit, Measurement, Statement, Study

PAPER_CELLS = 115_000_000
CELLS_EACH = 1_500_000
"""Cells of a process on all hosts: some 100 MB that every step reads. Fewer hosts share the same mesh."""


def one_mesh(machine: Machine) -> Mapping[str, str]:
    """The mesh that all numbers of hosts share, at most the paper's."""
    if machine.virtual or machine.hosts < 2:
        return {}
    return {"cells": str(min(PAPER_CELLS, CELLS_EACH * machine.hosts))}


MEASUREMENTS = (
    Measurement(
        name=RING,
        plan="ring",
        settings={"n": "every", "sizes": "4MB", "processes": "node,socket,core"},
        quick={"n": "1,2,4,6,8,12,16,24,all", "comm_threads": "1", "processes": "node,socket"},
    ),
    Measurement(
        name=DIFFUSION,
        plan="diffusion",
        scaled=one_mesh,
        hosts=needs.scales,
        quick={"cells": "400000", "comm_threads": "1"},
    ),
)

NODE = Where(processes="node", threads=1)
NETWORK = (needs.network,)
SCALING = (needs.network, needs.several_scales)
CURVE = (needs.network, needs.computing_cores(3))
RATIO = (
    "confirmed if the side keeps less than 0.95 with its interval below 1, refuted if the loss is below 5 %"
)
SMALL_CHANGE = "confirmed if the intervals differ by less than 5 % everywhere, refuted if by more anywhere"
DRAWN = "a drawing of the model: `elbowroom overlap ... -o FILE --figure time` or `--figure plane`"
FORMULA = "an example by the formula: `elbowroom overlap --work 60 ...`; nothing is measured in the paper"

FIGURE_2 = Exhibit(
    label="Fig. 2",
    title="MPI and STREAM bandwidths under contention (Cartesius)",
    runs=(RING,),
    draw=panels(RING, names="ring-"),
    tables=run_tables(RING),
    differs="one process per core is measured as well; the table has the slowest processes of the ring",
    statements=(
        Statement(
            text="the MPI bandwidth declines steadily with the number of contending threads",
            section="III",
            paper="steadily",
            judge=manner(Curve(RING, "comm", NODE), "steadily"),
            criterion="steadily: no step between neighbours makes more than half of the loss",
            needs=CURVE,
        ),
        Statement(
            text="MPI loses bandwidth with all cores",
            section="III",
            paper="5.8 to 2.7 GB/s, L_N = 2.2 (printed values: 2.15)",
            judge=loses("comm", NODE),
            criterion=RATIO,
            needs=NETWORK,
        ),
        Statement(
            text="STREAM loses bandwidth with all cores",
            section="III",
            paper="75 to 43 GB/s, L_M = 1.72 (printed values: 1.74)",
            judge=loses("comp", NODE),
            criterion=RATIO,
            needs=NETWORK,
        ),
        Statement(
            text="one process per socket and one per node have the same MPI bandwidth with all cores",
            section="III",
            paper="essentially the same",
            judge=equal_at_ends,
            criterion="confirmed if the intervals differ by less than 10 %, refuted if by more",
            needs=(needs.network, needs.two_sockets),
        ),
    ),
)

FIGURE_3 = Exhibit(
    label="Fig. 3",
    title="MPI and STREAM bandwidths under contention (Vilje)",
    runs=(RING,),
    draw=panels(RING, names="ring-"),
    differs="the same experiment on a second cluster: the figure shows this machine's ring again",
    statements=(
        Statement(
            text="the communicating cores lose approximately half of their MPI bandwidth",
            section="III",
            paper="approximately half",
            judge=loss(Curve(RING, "comm", NODE), 0.6, 0.4),
            criterion="confirmed if its interval with all cores is within 0.4 and 0.6, refuted if outside",
            needs=NETWORK,
        ),
    ),
)

FIGURE_8 = Exhibit(
    label="Fig. 8",
    title="Communication volumes and costs over the number of nodes",
    runs=(DIFFUSION,),
    draw=panels(DIFFUSION, names="diffusion-volumes"),
    needs=(needs.several_scales,),
    differs="a box of tetrahedra cut by METIS; the paper's is a heart cut by KaHiP and PaToH",
    statements=(
        Statement(
            text="the exchange takes less time on more nodes, but does not shrink in proportion",
            section="V",
            paper="0.86 ms on 4 nodes, 0.20 ms on 256",
            judge=exchange_shrinks,
            criterion=(
                "confirmed if T_N shrinks, but by less than the nodes grow, with the intervals of both; "
                "refuted if it does not shrink, or by more"
            ),
            needs=SCALING,
        ),
    ),
)

TABLE_2 = Exhibit(
    label="Table II",
    title="Model predictions and errors for the diffusion code",
    runs=(DIFFUSION,),
    tables=run_tables(DIFFUSION),
    statements=(
        Statement(
            text="the model predicts the step from T_M, T_N and the loss ratios of the benchmark",
            section="V",
            paper="within 1.2 to 13.9 %",
            judge=predicted,
            criterion=(
                "confirmed if all errors are below 15 % with the intervals of both, and there is contention; "
                "refuted if one is above"
            ),
            needs=(needs.network, needs.not_of_law),
        ),
    ),
)

FIGURE_9 = Exhibit(
    label="Fig. 9",
    title="Performance of a node with one or several communication threads, and without communication",
    runs=(DIFFUSION,),
    draw=panels(DIFFUSION, names="diffusion-performance"),
    needs=(needs.several_scales,),
    statements=(
        Statement(
            text="communication costs performance only on many nodes",
            section="V",
            paper="no-communication version clearly above the others there",
            judge=communication_costs_on_many_nodes,
            criterion=(
                "confirmed if a step without communication gains more on the most nodes than on the fewest, "
                "intervals apart; refuted if less"
            ),
            needs=SCALING,
        ),
        Statement(
            text="several communication threads change little",
            section="V",
            paper="minor",
            judge=threads_change_little,
            criterion=SMALL_CHANGE,
            needs=NETWORK,
        ),
        Statement(
            text="a step without overlap is as fast as with overlap",
            section="V",
            paper="very similar",
            judge=overlap_is_no_faster,
            criterion=SMALL_CHANGE,
            needs=NETWORK,
        ),
    ),
)

STUDY = Study(
    name="langguth2018",
    paper="Langguth, Cai, Sourouri: Memory Bandwidth Contention (ICPADS 2018)",
    page="docs/papers/paper-langguth2018.md",
    measurements=MEASUREMENTS,
    exhibits=(
        Exhibit(
            label="Fig. 1", title="Flop/s and memory bandwidth of Xeon processors", instead="data of vendors"
        ),
        Exhibit(
            label="Table I",
            title="Specifications of the test systems",
            instead="`elbowroom doctor`, and the manifest of each run",
        ),
        FIGURE_2,
        FIGURE_3,
        Exhibit(
            label="Fig. 4", title="Example of the effect of contention under strong scaling", instead=DRAWN
        ),
        Exhibit(label="Fig. 5", title="Performance over time in the model", instead=DRAWN),
        Exhibit(label="Fig. 6", title="The plane of times", instead=DRAWN),
        Exhibit(label="Fig. 7", title="The plane of times with several computations", instead=DRAWN),
        FIGURE_8,
        TABLE_2,
        FIGURE_9,
        Exhibit(label="VI", title="Heterogeneous computations", instead=FORMULA),
    ),
)
