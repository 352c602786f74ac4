"""lib/predict answers loads as Python does, and refuses what Python refuses."""

from __future__ import annotations

import errno
import os
import re
import runpy
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from elbowroom import api
from elbowroom.errors import UsageError
from elbowroom.models.curves import STREAMS, Shape, Situation
from elbowroom.models.document import Calibration, Document, Models
from elbowroom.models.flow.extras import NEUTRAL, regime_names
from elbowroom.models.flow.law import NAMES
from elbowroom.models.flow.part import FlowPart, LoadPart
from elbowroom.models.load import Computing, Copy, Load, Messages
from elbowroom.models.message_size import MessageSize
from elbowroom.models.predict import FittedModel, predict

TOOLS = runpy.run_path(str(Path(__file__).parents[2] / "predict_library.py"))
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
    values, *draws = (TOOLS["flow_values"](rng) for _ in range(4))
    part = FlowPart(
        names=NAMES,
        values=values,
        low=values,
        high=values,
        draws=tuple(draws),
        discrepancy=(0.0, 0.01, 0.02, 0.1),
        discrepancies=TOOLS["SIDES"] if seed % 2 else None,
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


def compare(loaded: Any, document: Document, load: Load, name: str | None = None) -> bool:
    """Whether there is an answer; Python has the same to 1e-9, or refuses too."""
    found = loaded.ask_load(load)
    try:
        (said,) = FittedModel(document, name).predict_loads([load])
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


def test_the_library_knows_the_parameters_that_python_knows() -> None:
    header = (TOOLS["ROOT"] / "lib" / "predict" / "flow_load.hpp").read_text()
    table = re.search(r"kLoadNames = \{\{(.*?)\}\};", header, re.DOTALL)
    assert table is not None
    found = re.findall(r'\{"(\w+)", ([\d.e+-]+)\}', table[1])
    assert {name: float(value) for name, value in found} == NEUTRAL


@pytest.mark.parametrize("seed", [1, 2, 7])
@pytest.mark.parametrize("size", [64, 100_000, SIZE, 1_000_000_000])
def test_a_model_at_another_size_knows_what_runs_of_loads_told(
    library: Any, tmp_path: Path, seed: int, size: int
) -> None:
    document = random_document(seed)
    part = document.models.flow
    assert part is not None
    assert part.load is not None
    known = msgspec.structs.replace(part.load, measured=QUESTIONS)
    models = Models(flow=msgspec.structs.replace(part, load=known))
    document = msgspec.structs.replace(document, models=models)
    path = api.Model(document).save(tmp_path / "M.json")
    asked = [
        Situation(comp_node=comp, comm_node=comm, n=n, n_other=other)
        for comp in range(document.machine.nodes)
        for comm in range(document.machine.nodes)
        for n, other in ((0, 0), (2, 0), (6, 3), (0, 1))
    ]
    with TOOLS["Loaded"](library, path, size=size) as loaded:
        for said in predict(document, asked, size=size):
            answer = loaded.ask(said.situation)
            for stream in STREAMS:
                assert_close(getattr(answer, stream), getattr(said, stream), said.situation, stream)
            assert answer.flags == sum(TOOLS["FLAGS"][flag] for flag in said.flags), said


def test_a_threshold_model_answers_the_loads_that_it_does_in_python(library: Any, tmp_path: Path) -> None:
    law = MessageSize(t0=4.0, low=3.0, high=5.0, sizes=(4096, 1_000_000, SIZE), misfit=0.02)
    document = msgspec.structs.replace(api.load_model("henri").document, message_size=law)
    path = api.Model(document).save(tmp_path / "M.json")
    rng = np.random.default_rng(1)
    loads = [
        Load(
            computing=tuple(Computing(socket=0, node=comp, count=count) for count in ([n] if n else [])),
            messages=None if comm is None else Messages(node=comm, size=size),
        )
        for comp in (0, 1)
        for comm in (None, 0, 1)
        for n in (0, 1, 12, 18)
        for size in (None, 64, 100_000, SIZE)
    ]
    with TOOLS["Loaded"](library, path, "threshold") as loaded:
        assert all(compare(loaded, document, load, "threshold") for load in loads)
        refused = [random_load(rng, document.machine) for _ in range(30)]
        assert not all(compare(loaded, document, load, "threshold") for load in refused)


def test_the_example_asks_for_a_load(tmp_path: Path) -> None:
    document = random_document(5)
    path = api.Model(document).save(tmp_path / "M.json")
    done = TOOLS["run"](str(TOOLS["built"]("predict_example")), str(path), "0", "1")
    first, second = done.stdout.splitlines()
    found = re.fullmatch(r"random: up to (\d) of 6 cores", first)
    assert found is not None
    load = Load(
        computing=(Computing(socket=0, node=0, count=int(found[1])),) if int(found[1]) else (),
        messages=Messages(node=1),
        copies=(Copy(node=0, demand=12000.0),),
    )
    (said,) = FittedModel(document).predict_loads([load])
    copy, kept, alone = said.copies[0].value, said.comm_together.value, said.comm_alone.value
    assert second == f"beside a copy of {copy:.0f} MB/s (alone 12000): {kept:.0f} of {alone:.0f} MB/s"


def test_the_programs_of_the_page_run(tmp_path: Path) -> None:
    """Its pieces of C one after the other, in a folder with a model."""
    page = (TOOLS["ROOT"] / "docs" / "reference" / "predict-library.md").read_text()
    blocks = "".join(re.findall(r"```c\n(.*?)```", page, re.DOTALL))
    assert blocks.count("#include") == 1
    include, body = re.match(r"(#include.*?\n)(.*)", blocks, re.DOTALL).groups()  # type: ignore[union-attr]
    end = "elbow_predict_model_free(model);\nreturn 0;\n}\n"
    source = f"#include <stdio.h>\n{include}int main(void) {{\n{body}{end}"
    (tmp_path / "page.c").write_text(source)
    shared = TOOLS["built"]("elbow_predict", "libelbow_predict.so")
    headers, folder = TOOLS["ROOT"] / "include", shared.parent
    strict = ("-std=c99", "-pedantic-errors", "-Wall", "-Werror")
    done = TOOLS["run"](
        os.environ.get("CC", "cc"), *strict, f"-I{headers}", str(tmp_path / "page.c"), "-o",
        str(tmp_path / "page"), f"-L{folder}", "-lelbow_predict", f"-Wl,-rpath,{folder}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = page_document()
    api.Model(document).save(tmp_path / "M.json")
    said = TOOLS["run"]("./page", cwd=tmp_path)
    assert said.stderr == ""
    (expected,) = FittedModel(document).predict_loads(
        [
            Load(
                computing=(
                    Computing(socket=0, node=0, count=4),
                    Computing(socket=0, node=1, count=2, intensity=0.5),
                ),
                messages=Messages(node=0, direction="send", size=65536, threads=2),
                copies=(Copy(node=1, demand=12000.0),),
            )
        ]
    )
    values = [expected.comm_together, *expected.groups, *expected.copies]
    told = "messages {:g}, cores {:g} and {:g}, copy {:g} MB/s".format(*(item.value for item in values))
    assert said.stdout.splitlines()[1] == told


def page_document() -> Document:
    document = random_document(5)
    part = document.models.flow
    assert part is not None
    assert part.load is not None
    known = msgspec.structs.replace(part.load, measured=QUESTIONS)
    return msgspec.structs.replace(document, models=Models(flow=msgspec.structs.replace(part, load=known)))


def test_the_header_is_plain_c() -> None:
    text = "#include <elbowroom/predict.h>\nint main(void) { return elbow_predict_error()[0] != 0; }\n"
    strict = ("-std=c89", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-fsyntax-only")
    compiler, headers = os.environ.get("CC", "cc"), TOOLS["ROOT"] / "include"
    done = TOOLS["run"](compiler, *strict, f"-I{headers}", "-x", "c", "-", input=text)
    assert done.returncode == 0, done.stderr
