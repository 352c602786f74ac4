"""lib/predict answers loads as Python does, and refuses what Python refuses."""

from __future__ import annotations

import errno
import runpy
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from elbowroom import api
from elbowroom.errors import UsageError
from elbowroom.model.curves import STREAMS, Shape
from elbowroom.model.document import Calibration, Document, FlowPart, LoadPart, ModelName, Models
from elbowroom.model.flow import NAMES
from elbowroom.model.flow_extras import NEUTRAL, regime_names
from elbowroom.model.load import Computing, Copy, Load, Messages
from elbowroom.model.message_size import MessageSize
from elbowroom.predict.loading import predict_loads

TOOLS = runpy.run_path(str(Path(__file__).parents[1] / "predict_library.py"))
SIZE = 64_000_000
SIZES = (1, 64, 4095, 4096, 100_000, SIZE, 1_000_000_000)
QUESTIONS = ("intensity", "sizes", "send", "both", "threads", "copies", "nodes")
RANGES = {
    "peak": (2e3, 5e4),
    "roofline": (0.7, 8.0),
    "thrift": (0.0, 2.0),
    "latency_load": (0.0, 2.0),
    "relief": (0.0, 1.0),
    "thread_gain": (1.0, 4.0),
    "queueing": (0.0, 1.2),
    "devices": (1e4, 1e5),
}

pytestmark = pytest.mark.skipif(bool(TOOLS["missing"]()), reason=f"{TOOLS['missing']()} is not installed")


@pytest.fixture(scope="module")
def library() -> Any:
    return TOOLS["load"]()


def flow_values(rng: np.random.Generator) -> tuple[float, ...]:
    """FLOW's parameters without sense, zeros among them where they may be."""
    values = []
    for name in NAMES:
        if name.startswith(("floor", "weight")):
            values.append(float(rng.choice([0.0, rng.uniform(0, 1)])))
        elif name.startswith(("dip", "rise", "excess")):
            values.append(float(rng.choice([0.0, rng.uniform(0, 0.4)])))
        elif name in ("remote_weight", "remote_cost", "cost_first", "cost_second"):
            values.append(float(rng.uniform(0.3, 3)))
        else:
            values.append(float(rng.uniform(2e3, 5e4)))
    return tuple(values)


def load_part(rng: np.random.Generator, draws: int) -> LoadPart:
    """Parameters of loads without sense, some of them missing, and what was measured likewise."""
    switches = tuple(sorted(rng.choice([64, 4096, 100_000], size=rng.integers(0, 3), replace=False).tolist()))
    names = [*NEUTRAL, *regime_names(len(switches) + 1)]
    names = [names[k] for k in rng.permutation(len(names)) if rng.random() < 0.9]

    def values() -> tuple[float, ...]:
        ranges = [
            (0.1, 6.0) if n.startswith("latency_") and n not in NEUTRAL else RANGES.get(n, (0.5, 1.6))
            for n in names
        ]
        return tuple(float(rng.uniform(*one)) for one in ranges)

    best = values()
    return LoadPart(
        names=tuple(names),
        values=best,
        low=best,
        high=best,
        draws=tuple(values() for _ in range(draws)),
        discrepancy=(0.01, 0.02, 0.0, 0.05),
        measured=tuple(q for q in QUESTIONS if rng.random() < 0.8),  # type: ignore[misc]
        switches=switches,
        intensity=float(rng.choice([0.0, 0.1])),
        intensity_high=2.0,
        size_low=64,
        size_high=SIZE,
    )


def random_document(seed: int) -> Document:
    """FLOW for a machine of two or three sockets, with or without what runs told of loads and of sizes."""
    rng = np.random.default_rng(seed)
    shape = Shape(
        name="random",
        cores_first_socket=6,
        numa_per_socket=int(rng.integers(1, 4)),
        sockets=2 + seed % 2,
        virtual=seed % 3 == 0,
    )
    values, *draws = (flow_values(rng) for _ in range(4))
    part = FlowPart(
        names=NAMES,
        values=values,
        low=values,
        high=values,
        draws=tuple(draws),
        discrepancy=(0.0, 0.01, 0.02, 0.1),
        load=None if seed % 4 == 0 else load_part(rng, 3),
    )
    law = MessageSize(t0=0.03, low=0.01, high=0.05, sizes=(4096, 1_000_000, SIZE), misfit=0.02)
    known = Calibration(
        run="",
        plan="",
        origin="virtual",
        kernel="triad",
        size=SIZE,
        runs=1,
        n_low=2,
        n_high=4,
        n_other_high=3,
        placements=((0, 0), (0, shape.numa_per_socket)),
    )
    return Document(
        elbowroom="",
        created="",
        machine=shape,
        calibration=known,
        models=Models(flow=part),
        message_size=law if seed % 3 else None,
    )


def random_load(rng: np.random.Generator, shape: Shape) -> Load:
    def node() -> int:
        return int(rng.integers(shape.nodes))

    groups = [
        Computing(
            socket=int(rng.integers(shape.sockets)),
            node=node(),
            count=int(rng.integers(1, 3)),
            intensity=float(rng.choice([0.0, 0.0, 0.05, 0.5, 4.0])),
        )
        for _ in range(rng.choice([0, 1, 1, 2, 2, 3]))
    ]
    if rng.random() < 0.4:
        groups = [msgspec.structs.replace(group, node=groups[0].node) for group in groups]
    messages = Messages(
        node=node(),
        direction=rng.choice(["receive", "receive", "send", "both"]),
        size=None if rng.random() < 0.4 else int(rng.choice(SIZES)),
        threads=int(rng.choice([1, 1, 2, 5])),
    )
    copies = [
        Copy(node=node(), demand=float(rng.uniform(1e3, 3e4))) for _ in range(rng.choice([0, 0, 0, 1, 2]))
    ]
    return Load(
        computing=tuple(groups), messages=messages if rng.random() < 0.85 else None, copies=tuple(copies)
    )


def assert_close(mine: Any, its: Any, *where: object) -> None:
    """To 1e-9; below that many MB/s only rounding is left, and there are no logarithms of it."""
    if max(mine.value, its.value) < 1e-9:
        return
    for end in ("value", "low", "high"):
        assert getattr(mine, end) == pytest.approx(getattr(its, end), rel=1e-9, abs=1e-9), (*where, end)


def compare(loaded: Any, document: Document, load: Load, name: ModelName | None = None) -> bool:
    """Whether there is an answer; Python has the same to 1e-9, or refuses too."""
    found = loaded.ask_load(load)
    try:
        (said,) = predict_loads(document, [load], name=name)
    except UsageError:
        said = None
    if said is None:
        assert isinstance(found, tuple), load
        assert found[0] in (errno.EINVAL, errno.ENOTSUP, errno.EDOM)
        return False
    assert not isinstance(found, tuple), (load, found)
    for stream in STREAMS:
        assert_close(getattr(found, stream), getattr(said, stream), load, stream)
    for k, group in enumerate(said.groups):
        assert_close(found.groups[k], group, load, "group", k)
    for k, copy in enumerate(said.copies):
        assert_close(found.copies[k], copy, load, "copy", k)
    assert found.flags == sum(TOOLS["FLAGS"].get(flag, 0) for flag in said.flags), (load, said.flags)
    return True


@pytest.mark.parametrize("seed", range(24))
def test_loads_are_answered_as_in_python_whatever_the_parameters(
    library: Any, tmp_path: Path, seed: int
) -> None:
    document = random_document(seed)
    path = api.Model(document).save(tmp_path / "M.json")
    rng = np.random.default_rng(1000 + seed)
    with TOOLS["Loaded"](library, path) as loaded:
        loads = [random_load(rng, document.machine) for _ in range(25)]
        answered = sum(compare(loaded, document, load) for load in loads)
    assert answered >= 3
