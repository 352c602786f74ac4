"""Koop, Luo, Panda: Reducing Network Contention with Mixed Workloads on Modern Multicore Clusters, CLUSTER
2009, the slides.

Programs that share nodes are measured by commands of their own: the study lists them, slide by slide.
"""

from __future__ import annotations

from elbowroom.studies.study import Exhibit, Study

SLIDES = "`python benchmarks/koop_slides.py FOLDER`"
PRINTED = "`elbowroom colocate schedule --matrix machines/colocation/koop_shared_8x8.csv`"
DIAGRAM = "a drawing of how InfiniBand works: nothing is measured"


def _slide(number: str, title: str, instead: str, differs: str = "") -> Exhibit:
    return Exhibit(
        label=f"Slide {number}", title=title, instead=instead, differs=differs, section=f"slide {number}"
    )


STUDY = Study(
    name="koop2009",
    paper="Koop, Luo, Panda: Reducing Network Contention with Mixed Workloads (CLUSTER 2009, slides)",
    page="docs/papers/paper-koop2009.md",
    measurements=(),
    exhibits=(
        _slide("2", "Cores of a node, and its network device", "a drawing; `elbowroom doctor` lists yours"),
        _slide("4", "Traffic that each core contributes", "`elbowroom profile show P`: bytes by rank"),
        _slide("5", "Interconnects of the Top500 over time", "data of others: nothing is measured"),
        _slide("6", "Messages that pass the kernel by", DIAGRAM),
        _slide("7", "Queue pairs and completion queues", DIAGRAM),
        _slide("8", "RDMA transfer without the processor", DIAGRAM),
        _slide("12", "Times of a process in MPI and on the network", "as slide 13"),
        _slide(
            "13",
            "MPI time and network time",
            "`python benchmarks/nic.py`: both for each program; yours: `elbowroom profile -- APP`",
        ),
        _slide(
            "14",
            "Duration of transfers by the number of concurrent senders",
            "`elbowroom nic measure --nic 50MB/s --ranks-per-node 8`; without --nic that of a real NIC",
        ),
        _slide("16", "Data per node, analysed offline", "`elbowroom profile show P`"),
        _slide(
            "17",
            "NAS FT: who is on the network over time",
            f"{SLIDES}; yours: `elbowroom profile show P -o P.svg`",
            "a program with FT's messages, which sleeps where FT computes",
        ),
        _slide("18", "The network is idle, then contended", "`elbowroom profile show P`: idle, burstiness"),
        _slide("19", "All cores and half of the cores: the placement", "a drawing; runtimes: slide 20"),
        _slide(
            "20",
            "Runtimes with all cores and with half of the cores",
            f"{SLIDES}; of all eight programs `python benchmarks/pairs.py FOLDER`",
            "programs with the messages of the NAS benchmarks",
        ),
        _slide("21", "Jobs that share nodes", "a drawing; which pairs should: slide 22"),
        _slide("22", "Exclusive and shared nodes: the placement", f"a drawing; the best pairs: {PRINTED}"),
        _slide(
            "23",
            "Two jobs of FT on the same nodes over time, and one with the nodes to itself",
            f"{SLIDES}; yours: `elbowroom profile show P --together Q -o both.svg`",
        ),
        _slide(
            "24",
            "Runtimes of all pairs on shared nodes",
            f"`python benchmarks/pairs.py FOLDER`; the best pairs of the printed table: {PRINTED}",
        ),
        _slide(
            "25",
            "Runtimes by companion: FT, LU and CG",
            f"{PRINTED[:-1]} --figure companions -o companions.svg`; measured: {SLIDES}",
        ),
        _slide("26", "CG and EP over time beside their four cells of the table", SLIDES),
        _slide(
            "27",
            "Conclusion: 20 % by sharing; other network speeds",
            f"`python benchmarks/koop.py`; two speeds of the network: {SLIDES}",
        ),
    ),
)
