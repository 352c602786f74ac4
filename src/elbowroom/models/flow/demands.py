"""FLOW for cores whose demand is known in MB/s, by counters or because somebody states it, and not by an
arithmetic intensity: what they get beside each other. The law is that of models/flow/network.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from elbowroom.models.document import Document
from elbowroom.models.flow.law import INDEX, Array
from elbowroom.models.flow.model import extension_of
from elbowroom.models.flow.network import Form, shared


class CoreDemand(msgspec.Struct, frozen=True, kw_only=True):
    """`cores` (a fraction where several nodes share them) that ask for `demand` MB/s together; inf: for all
    that cores of the model's kernel ask for.
    """

    cores: float
    demand: float


def rates(document: Document, loads: Sequence[tuple[CoreDemand, CoreDemand]]) -> Array:
    """MB/s that each of two groups of cores gets, (2, 1 + D, L): row 0 the best fit, then the draws.

    Both groups are spread evenly over all NUMA nodes and have their data in the nodes of their cores; without
    messages. Nothing is checked.
    """
    part, shape = document.models.flow, document.machine
    assert part is not None
    vectors = part.vectors
    nodes = range(shape.numa_per_socket)
    form = Form(groups=tuple((0, node) for node in nodes for _ in (0, 1)), messages=None, copies=())
    core = vectors[:, [INDEX["core_local"]]]
    power = extension_of(document).get("thrift")
    demands, weights = [], []
    for group in (0, 1):
        cores = np.array([load[group].cores for load in loads]) / shape.nodes
        whole = cores * core
        demand = np.minimum(np.array([load[group].demand for load in loads]) / shape.nodes, whole)
        share = np.divide(demand, whole, out=np.zeros_like(demand), where=whole > 0)
        demands.append(demand)
        weights.append(cores * share**power)
    values = {name: vectors[:, place, None, None] for name, place in INDEX.items()}
    found = shared(
        form,
        shape,
        values,
        demands * len(nodes),
        weights * len(nodes),
        np.zeros((len(vectors), len(loads))),
        (),
        np.full((len(vectors), 1, 1), np.inf),
    )
    # Every socket is like the first one.
    return np.stack([found[group::2].sum(axis=0) for group in (0, 1)]) * shape.sockets
