"""Swartvagher: On the Interactions between HPC Task-based Runtime Systems and Communication Libraries, PhD
thesis, Bordeaux 2022: chapters 3 to 6.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import msgspec

from elbowroom.machine.topology import Machine
from elbowroom.studies import frequency, memory, needs, pressure, runtime
from elbowroom.studies.drawings import panels, run_tables
from elbowroom.studies.judgements import verdict_of_findings
from elbowroom.studies.study import Exhibit, Measurement, Statement, Study
from elbowroom.studies.thesis import (
    MODEL,
    accurate,
    communications_lose_first,
    error_table,
    minimum_assured,
    same_node_matters,
    trees_gain,
)

CHOLESKY, QR, FORWARDING = "cholesky", "qr", "forwarding"
SHARED_NIC, PRIORITIES, EARLY, AT_ONCE = (
    f"{CHOLESKY}-{name}" for name in ("two-a-node", "priorities", "early", "at-once")
)
TILES, GRIDS = f"{QR}-tiles", f"{QR}-grids"

FEWEST = 4
"""Processes of a grid at least: of fewer, no broadcast has several recipients. The thesis has one a node."""

BLOCK = 320
"""Rows of a tile by default in the thesis (4.4.3)."""


def square_grid(machine: Machine) -> Mapping[str, str]:
    """Cholesky's grid, square as in the thesis: the largest that the hosts fill (8 x 8 of 64 nodes), and
    matrices from small to large, each with several tiles for a process.
    """
    side = max(2, math.isqrt(machine.hosts))
    if machine.hosts < FEWEST:
        return {"grid": f"{side}x{side}"}
    tiles = ",".join(str(times * side) for times in (4, 8, 16))
    return {"grid": f"{side}x{side}", "block": str(BLOCK), "tiles": tiles}


def on_one_matrix(chosen: Mapping[str, str]) -> Mapping[str, str]:
    """The same on its second largest matrix alone, where something else than its size varies."""
    sizes = chosen.get("tiles", "").split(",")
    return {**chosen, "tiles": sizes[len(sizes) // 2]} if len(sizes) > 1 else chosen


def two_a_node(machine: Machine) -> Mapping[str, str]:
    """Cholesky's grid with two processes on each host, which share its NIC (20 x 20 of 200 nodes)."""
    return on_one_matrix(square_grid(msgspec.structs.replace(machine, hosts=2 * machine.hosts)))


def sizes_of_tiles(machine: Machine) -> Mapping[str, str]:
    """The matrix of QR's middle size, in tiles of a half to three times the usual rows."""
    chosen = dict(on_one_matrix(one_row(machine)))
    tiles, block = int(chosen.pop("tiles", "12")), int(chosen.get("block", "96"))
    blocks = [block * times // 4 for times in (2, 3, 4, 6, 8, 12)]
    common = math.lcm(*blocks)
    return {
        **chosen, "block": ",".join(map(str, blocks)), "order": str(-(-tiles * block // common) * common)
    }  # fmt: skip


def shapes_of_grids(machine: Machine) -> Mapping[str, str]:
    """As many processes in one row, in two rows, and so on to a square (1 x 196 to 14 x 14 in the thesis)."""
    chosen = on_one_matrix(one_row(machine))
    processes = max(FEWEST, machine.hosts)
    rows = [count for count in range(1, math.isqrt(processes) + 1) if processes % count == 0]
    return {**chosen, "grid": ",".join(f"{count}x{processes // count}" for count in rows)}


def one_row(machine: Machine) -> Mapping[str, str]:
    """QR's grid, 1 x nodes, so that each broadcast goes to all others; the matrix is three times as wide as
    high, as in Figs. 4.14 to 4.16 (90 x 270 tiles of 320 on 196 nodes).
    """
    processes = max(FEWEST, machine.hosts)
    shape = {"grid": f"1x{processes}", "columns_per_row": "3"}
    if machine.hosts < FEWEST:
        return shape
    # From as many columns of tiles as processes.
    least = max(6, -(-processes // 3))
    return {**shape, "block": str(BLOCK), "tiles": f"{least},{least * 3 // 2},{2 * least}"}


TREES = {"trees": "none,binomial,binary"}
"""Those of the thesis."""

INLINE = {"builds": "inline"}

MEASUREMENTS = (
    Measurement(name=CHOLESKY, plan="cholesky", scaled=square_grid, quick=INLINE),
    Measurement(name=QR, plan="qr", scaled=one_row, quick=INLINE),
    Measurement(name=SHARED_NIC, plan="cholesky", settings=TREES, scaled=two_a_node, quick=INLINE),
    Measurement(
        name=PRIORITIES,
        plan="cholesky",
        settings={**TREES, "priorities": "true,false"},
        scaled=lambda machine: on_one_matrix(square_grid(machine)),
        quick=INLINE,
    ),
    Measurement(
        name=EARLY,
        plan="cholesky",
        settings={**TREES, "early": "true,false"},
        scaled=lambda machine: on_one_matrix(square_grid(machine)),
        quick=INLINE,
    ),
    Measurement(
        name=AT_ONCE,
        plan="cholesky",
        settings={"builds": "starpu", "trees": "binomial", "hold": "true,false"},
        scaled=lambda machine: on_one_matrix(square_grid(machine)),
    ),
    Measurement(name=TILES, plan="qr", settings=TREES, scaled=sizes_of_tiles, quick=INLINE),
    Measurement(name=GRIDS, plan="qr", settings=TREES, scaled=shapes_of_grids, quick=INLINE),
    Measurement(name=FORWARDING, plan="forwarding", quick={"n": "all", "computations": "triad"}),
    *frequency.MEASUREMENTS,
    *memory.MEASUREMENTS,
    *pressure.MEASUREMENTS,
    *runtime.MEASUREMENTS,
    Measurement(name=MODEL, plan="model", quick={"n": "1,2,3,5,8,12,16,all"}),
)

FASTER = "confirmed if each tree is certainly more than 5 % faster on some matrix, refuted if one is on none"
TRACED = "needs a trace of your application: `elbowroom trace record -o t -- APP`, then"
FLUSHES = "needs your application: `elbowroom trace flushes"


CHAPTER_3 = (
    Exhibit(
        label="Fig. 3.1",
        title="An execution of Cholesky",
        instead=f"{TRACED} `trace activity t -o activity.svg`, and `trace merge t -o t.html`",
    ),
    Exhibit(
        label="Fig. 3.2",
        title="Impact of buffer flushes on performance",
        instead=f"{FLUSHES} -o flushes.html -- APP`: each run, and where it was flushed",
    ),
    Exhibit(
        label="Fig. 3.3, 3.4",
        title="Several runs with and without flushes",
        instead=f"{FLUSHES} -- APP`: what each flush interrupted, and the runs without flushes",
    ),
    Exhibit(
        label="Fig. 3.5 to 3.7",
        title="Events by type and over time",
        instead=f"{TRACED} `trace stat t -o events.svg`",
    ),
    Exhibit(
        label="Fig. 3.8 to 3.12",
        title="Overhead of recording by events and by threads",
        instead="needs your application: `elbowroom trace overhead --threads 1,2,4 -- APP`",
    ),
    Exhibit(
        label="Fig. 3.13 to 3.18",
        title="Clocks of several nodes",
        instead=f"{TRACED} `trace activity t -o activity.svg` (exits of barriers, durations of "
        "messages), `trace check t` and `trace sync t -o clocks.html`; simulated clocks: "
        "`python benchmarks/simulated_clocks.py -o clocks.svg`",
    ),
)

ON_FEWER = "a process on each node; hundreds on fewer: `python benchmarks/factorizations.py`"


def variants(run: str, label: str, title: str) -> Exhibit:
    """A factorization in several ways, which no statement of the thesis judges by itself."""
    return Exhibit(
        label=label, title=title, runs=(run,), draw=panels(run), tables=run_tables(run), differs=ON_FEWER
    )


CHAPTER_4 = (
    Exhibit(
        label="Fig. 4.1, 4.2",
        title="Binomial and binary trees",
        instead="pure functions, tested for up to 200 recipients",
    ),
    Exhibit(
        label="Fig. 4.3 to 4.6",
        title="Broadcasts alone",
        instead="`elbowroom broadcast bench`, and `python benchmarks/broadcast_areas.py`",
    ),
    Exhibit(label="Fig. 4.7, 4.8", title="Recipients of Cholesky", instead="`elbowroom broadcast factorize`"),
    Exhibit(
        label="Fig. 4.9, 4.10a",
        title="Cholesky with dynamic broadcasts",
        runs=(CHOLESKY,),
        draw=panels(CHOLESKY),
        tables=run_tables(CHOLESKY),
        differs=ON_FEWER,
        judged_with=(needs.network,),
        statements=(
            Statement(
                text="98 % of Cholesky's broadcasts are complete when their data are ready",
                section="4.2.1",
                paper="98 %",
                judge=verdict_of_findings(CHOLESKY, "cholesky-complete"),
                criterion="confirmed if 97.5 % or more are complete in every repetition, refuted if in none",
            ),
            Statement(
                text="broadcasts over trees make Cholesky faster",
                section="4.4.2",
                paper="20 to 30 % on 64 and 100 nodes of inti",
                judge=trees_gain(CHOLESKY, "cholesky"),
                criterion=FASTER,
            ),
        ),
    ),
    variants(SHARED_NIC, "Fig. 4.10b", "Cholesky with two processes on a node"),
    variants(PRIORITIES, "Fig. 4.11", "Cholesky with and without priorities"),
    variants(EARLY, "Fig. 4.12", "Readers that start at received or at released"),
    variants(
        AT_ONCE, "4.2.1", "Complete broadcasts, where ready data wait for readers and where they do not"
    ),
    Exhibit(label="Fig. 4.13", title="Recipients of QR", instead="`elbowroom broadcast factorize --task qr`"),
    Exhibit(
        label="Fig. 4.14",
        title="QR with dynamic broadcasts",
        runs=(QR, FORWARDING),
        draw=lambda evidence: (*panels(QR)(evidence), *panels(FORWARDING)(evidence)),
        tables=run_tables(QR),
        differs=ON_FEWER,
        judged_with=(needs.network,),
        statements=(
            Statement(
                text="broadcasts over trees make QR faster",
                section="4.4.3",
                paper="7 times with binary trees on 1 x 196 processes",
                judge=trees_gain(QR, "qr"),
                criterion=FASTER,
            ),
        ),
    ),
    variants(TILES, "Fig. 4.15", "QR by the size of tiles"),
    variants(GRIDS, "Fig. 4.16", "QR by the shape of the grid"),
)

LABELS = {
    "Fig. 1a": "Fig. 5.1a",
    "Fig. 1b": "Fig. 5.1b",
    "Fig. 2": "Fig. 5.2",
    "3.2, bora": "Fig. 5.3",
    "Fig. 3a": "Fig. 5.4a",
    "Fig. 3b, 3c": "Fig. 5.4b, 5.4c",
    "Fig. 4a": "Fig. 5.6a",
    "Fig. 4b": "Fig. 5.6b",
    "Fig. 5a": "Fig. 5.8a",
    "Fig. 5d": "Fig. 5.8b",
    "Fig. 5b": "Fig. 5.8c",
    "Fig. 5e": "Fig. 5.8d",
    "Fig. 5c": "Fig. 5.8e",
    "Fig. 5f": "Fig. 5.8f",
    "Table 1": "5.3.3",
    "Fig. 6a": "Fig. 5.9a",
    "Fig. 6b": "Fig. 5.9b",
    "Fig. 7a": "Fig. 5.10a",
    "Fig. 7b": "Fig. 5.10b",
    "5.2": "5.4.1",
    "Fig. 8": "Fig. 5.12",
    "Fig. 9": "Fig. 5.13",
    "Fig. 10": "Fig. 5.14",
}
"""Figures of the paper of 2021 in chapter 5."""

SECTIONS = {
    "3.1": "5.2.1", "3.2": "5.2.2", "3.2, 4.5": "5.2.2, 5.3.5", "3.3": "5.2.3", "3.4": "5.2.4",
    "4.2": "5.3.2", "4.3": "5.3.3", "Table 1": "5.3.3", "4.4": "5.3.4", "4.5": "5.3.5",
    "5.2": "5.4.1", "5.3": "5.4.2", "5.4": "5.4.3", "6": "5.5",
}  # fmt: skip


def relabelled(exhibit: Exhibit) -> Exhibit:
    """A figure of the paper of 2021 as the thesis numbers it."""
    statements = tuple(
        replace(statement, section=SECTIONS[statement.section]) for statement in exhibit.statements
    )
    return replace(exhibit, label=LABELS[exhibit.label], statements=statements)


_2021 = {
    exhibit.label: relabelled(exhibit)
    for exhibit in (*frequency.EXHIBITS, *memory.EXHIBITS, *pressure.EXHIBITS, *runtime.EXHIBITS)
}

DIAGRAM = Exhibit(
    label="Fig. 5.5", title="Data streams in a node", instead="a drawing; `elbowroom simulate-memory` has one"
)

OTHER_CLUSTERS = {
    "Fig. 5.6b": Exhibit(
        label="Fig. 5.7",
        title="Bandwidth beside STREAM on bora",
        instead="Fig. 5.6b on another cluster: run the study there",
    ),
    "Fig. 5.10b": Exhibit(
        label="Fig. 5.11",
        title="Impact of memory pressure on billy",
        instead="Fig. 5.10 on another cluster: run the study there",
    ),
}


def _chapter_5() -> tuple[Exhibit, ...]:
    exhibits: list[Exhibit] = []
    for label in LABELS:
        exhibit = _2021[label]
        exhibits.append(exhibit)
        if exhibit.label == "Fig. 5.4b, 5.4c":
            exhibits.append(DIAGRAM)
        if exhibit.label in OTHER_CLUSTERS:
            exhibits.append(OTHER_CLUSTERS[exhibit.label])
    return tuple(exhibits)


FROM_MODEL = (needs.network, needs.not_of_law)

CHAPTER_6 = (
    Exhibit(
        label="Fig. 6.1",
        title="Stacked memory bandwidths",
        instead="`elbowroom fit RUN`, then `elbowroom evaluate RUN M.json --stacked -o stacked.svg`",
    ),
    Exhibit(
        label="Fig. 6.2 to 6.10",
        title="Computations and communications beside each other, all placements",
        runs=(MODEL,),
        draw=panels(MODEL),
        differs="the model's lines: `elbowroom fit RUN`, then `elbowroom report RUN`",
        section="6.3.3",
        judged_with=FROM_MODEL,
        statements=(
            Statement(
                text="communications lose before computations do",
                paper="communications are reduced first",
                judge=communications_lose_first(),
                criterion="confirmed if in each placement communication suffers from as few cores or fewer",
            ),
            Statement(
                text="a minimum of bandwidth is always assured for the network",
                paper="alpha between 0.27 and 1",
                judge=minimum_assured(),
                criterion="confirmed if it keeps more than 0.05 with its interval where it loses most",
            ),
            Statement(
                text="contention is most severe with the data of both on one NUMA node",
                paper="almost not impacted elsewhere",
                judge=same_node_matters(),
                criterion="confirmed if the intervals of kept at worst are apart in this direction",
                needs=(*FROM_MODEL, needs.two_nodes),
            ),
        ),
    ),
    Exhibit(
        label="Table 6.1",
        title="Model errors on testbed platforms",
        runs=(MODEL,),
        tables=error_table,
        statements=(
            Statement(
                text="the model predicts all placements with a small average error",
                section="6.3.2",
                paper="3.24 % on average over nine machines (below 4 %); 0.20 to 6.61 % by machine",
                judge=accurate(),
                criterion=(
                    "confirmed if the error of this machine is at most that of the thesis' worst (6.61 %), "
                    "with the interval of what was measured, and communication loses something; refuted if "
                    "above"
                ),
                needs=FROM_MODEL,
            ),
        ),
    ),
)

STUDY = Study(
    name="swartvagher2022",
    paper="Swartvagher: Interactions between Task-based Runtime Systems and Communication Libraries (2022)",
    page="docs/papers/paper-swartvagher2022.md",
    measurements=MEASUREMENTS,
    exhibits=(*CHAPTER_3, *CHAPTER_4, *_chapter_5(), *CHAPTER_6),
)
