"""What is measured on the nodes of a site, and how much healthy nodes may differ in it."""

from __future__ import annotations

import msgspec


class SiteQuantity(msgspec.Struct, frozen=True, kw_only=True):
    """A quantity of nodes, or `between` pairs of them. `tolerance`: the share by which a healthy node may be
    worse than its class. An `additive` one is a share of the time, 0 at best; its tolerance is in points.
    `needs_cores`: other programs on the cores of the node change it. `absent`: where no node has a value.
    """

    name: str
    unit: str
    what: str
    tolerance: float
    more_is_better: bool = True
    between: bool = False
    additive: bool = False
    needs_cores: bool = True
    absent: str = ""


WAITING = "waiting"
"""The quantity that shows other programs on the cores."""

QUANTITIES = {
    one.name: one
    for one in (
        SiteQuantity(
            name="memory",
            unit="MB/s",
            what="TRIAD on all cores but the one that communicates",
            tolerance=0.02,
        ),
        SiteQuantity(
            name="memory-latency",
            unit="ns",
            what="latency of a load from memory",
            tolerance=0.03,
            more_is_better=False,
        ),
        SiteQuantity(name="core", unit="Mflop/s", what="arithmetic of one core", tolerance=0.02),
        SiteQuantity(name="cache", unit="MB/s", what="loads and stores in the last cache", tolerance=0.03),
        SiteQuantity(name="message-rate", unit="M/s", what="small messages inside a node", tolerance=0.04),
        SiteQuantity(
            name="slow-moments",
            unit="share",
            what="share of the time in which TRIAD is disturbed",
            tolerance=0.04,
            more_is_better=False,
            additive=True,
        ),
        SiteQuantity(
            name="memory-numa",
            unit="MB/s",
            what="TRIAD of the NUMA node with the lowest rate",
            tolerance=0.03,
            absent="each node has one NUMA node",
        ),
        SiteQuantity(
            name=WAITING,
            unit="share",
            what="share of the time in which threads that compute wait for a core",
            tolerance=0.04,
            more_is_better=False,
            additive=True,
            absent="all nodes have a limit of processor time",
        ),
        SiteQuantity(
            name="throttled",
            unit="share",
            what="share of the periods in which the limit of the control group stops processes",
            tolerance=0.04,
            more_is_better=False,
            additive=True,
            needs_cores=False,
            absent="no control group can be read",
        ),
        SiteQuantity(
            name="steal",
            unit="share",
            what="share of the time of the processors that the hypervisor takes",
            tolerance=0.04,
            more_is_better=False,
            additive=True,
            needs_cores=False,
            absent="/proc/stat has no steal",
        ),
        SiteQuantity(
            name="memory-beside", unit="MB/s", what="TRIAD beside messages of all nodes", tolerance=0.03
        ),
        SiteQuantity(
            name="latency",
            unit="us",
            what="latency of a message",
            tolerance=0.08,
            more_is_better=False,
            between=True,
        ),
        SiteQuantity(
            name="bandwidth",
            unit="MB/s",
            what="bandwidth of large messages",
            tolerance=0.02,
            between=True,
            needs_cores=False,
        ),
        SiteQuantity(
            name="bandwidth-both",
            unit="MB/s",
            what="bandwidth of each way while both are used",
            tolerance=0.03,
            between=True,
            needs_cores=False,
        ),
        SiteQuantity(
            name="latency-beside",
            unit="us",
            what="latency of a message beside TRIAD on all other cores",
            tolerance=0.08,
            more_is_better=False,
            between=True,
        ),
        SiteQuantity(
            name="late",
            unit="share",
            what="share of the time by which equal work between barriers takes longer",
            tolerance=0.04,
            more_is_better=False,
            additive=True,
        ),
        SiteQuantity(
            name="bandwidth-beside",
            unit="MB/s",
            what="the same beside TRIAD on all other cores",
            tolerance=0.03,
            between=True,
            needs_cores=False,
        ),
    )
}
"""By name. What logs hold beyond them has a quantity made of its column (`logged`)."""

BOTH = {"memory": "memory-beside", "bandwidth": "bandwidth-beside"}
"""The quantities that are measured alone and beside the other side."""
