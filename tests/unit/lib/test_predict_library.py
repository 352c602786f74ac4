"""lib/predict gives what Python gives, for every number of cores and placement, and its example runs."""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from elbowroom import api
from elbowroom.models import published
from elbowroom.models.base import Provenance
from elbowroom.models.curves import STREAMS, Curves, Row, Shape, Situation
from elbowroom.models.document import Calibration, Document, Models
from elbowroom.models.fit import fit
from elbowroom.models.flow.law import NAMES
from elbowroom.models.flow.part import FlowPart
from elbowroom.models.message_size import MessageSize
from elbowroom.models.predict import predict
from elbowroom.models.registry import fitted_models
from elbowroom.virtual.machines import PublishedCurves
from elbowroom.virtual.truth import generator

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

import flow_design

TOOLS = runpy.run_path(str(Path(__file__).parents[2] / "predict_library.py"))
NODES = {"henri": 2, "henrisubnuma": 4}

pytestmark = pytest.mark.skipif(bool(TOOLS["missing"]()), reason=f"{TOOLS['missing']()} is not installed")


@pytest.fixture(scope="module")
def library() -> Any:
    return TOOLS["load"]()


def situations(shape: Shape, most_other: int = 0) -> Iterator[Situation]:
    for comp in range(shape.nodes):
        for comm in range(shape.nodes):
            for n in range(shape.cores_first_socket + 1):
                for other in range(most_other + 1):
                    yield Situation(comp_node=comp, comm_node=comm, n=n, n_other=other)


def compare(
    library: Any,
    document: Document,
    path: Path,
    name: Any,
    asked: list[Situation],
    size: int | None = None,
) -> None:
    """Every value and end of every interval within 1e-6, and the same flags."""
    api.Model(document).save(path)
    with TOOLS["Loaded"](library, path, name, size) as loaded:
        for response in predict(document, asked, name=name, size=size):
            answer = loaded.ask(response.situation)
            for stream in STREAMS:
                mine, its = getattr(answer, stream), getattr(response, stream)
                pairs = [(mine.value, its.value), (mine.low, its.low), (mine.high, its.high)]
                for ours, theirs in pairs:
                    assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-9), (response.situation, stream)
            assert answer.flags == sum(TOOLS["FLAGS"].get(flag, 0) for flag in response.flags)


@pytest.mark.parametrize("name", published.names())
def test_published_machines_are_evaluated_as_in_python(library: Any, tmp_path: Path, name: str) -> None:
    model = api.load_model(name)
    asked = list(situations(model.machine))
    compare(library, model.document, tmp_path / "M.json", "threshold", asked)


def fitted(name: str) -> Document:
    """All models, fitted to few runs of a published machine with 3 % noise."""
    truth = PublishedCurves(published.load(name).model)
    rows = []
    for at in flow_design.design(truth.shape):
        streams = truth.sample(at, 0.03, generator(1, truth.shape, at))
        rows.append(Row(situation=at, **dict(zip(STREAMS, streams, strict=True))))
    far = truth.shape.numa_per_socket
    for node in (0, far):
        for n in range(1, truth.shape.cores_first_socket + 1):
            at = Situation(comp_node=node, comm_node=node, n=n)
            streams = truth.sample(at, 0.03, generator(2, truth.shape, at))
            if at not in [row.situation for row in rows]:
                rows.append(Row(situation=at, **dict(zip(STREAMS, streams, strict=True))))
    curves = Curves(shape=truth.shape, rows=tuple(rows), origin="test")
    return fit(curves, Provenance(origin="virtual"), created="2026-01-01T00:00:00+00:00")


@pytest.mark.parametrize("machine", NODES)
def test_fitted_models_are_evaluated_as_in_python(library: Any, tmp_path: Path, machine: str) -> None:
    document = fitted(machine)
    assert document.machine.nodes == NODES[machine]
    assert fitted_models(document) == ("flow", "robust", "threshold")
    for name in fitted_models(document):
        asked = list(situations(document.machine))
        if name == "flow":
            asked += list(situations(document.machine, 3))
        compare(library, document, tmp_path / f"{name}.json", name, asked)


@pytest.mark.parametrize("size", [100, 100_000, 64_000_000, 1_000_000_000])
def test_messages_of_other_sizes_are_evaluated_as_in_python(library: Any, tmp_path: Path, size: int) -> None:
    sizes = MessageSize(t0=4.0, low=3.0, high=5.0, sizes=(4096, 1_000_000, 64_000_000), misfit=0.02)
    document = msgspec.structs.replace(sized(), message_size=sizes)
    for name in fitted_models(document):
        compare(library, document, tmp_path / "M.json", name, list(situations(document.machine)), size)


def sized() -> Document:
    """henri's thresholds, and FLOW with made-up parameters."""
    values = TOOLS["flow_values"](np.random.default_rng(3))
    part = FlowPart(names=NAMES, values=values, low=values, high=values, draws=(values,))
    document = api.load_model("henri").document
    return msgspec.structs.replace(document, models=msgspec.structs.replace(document.models, flow=part))


@pytest.mark.parametrize("seed", range(12))
def test_flow_is_evaluated_as_in_python_whatever_its_parameters(
    library: Any, tmp_path: Path, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    values, *draws = (TOOLS["flow_values"](rng) for _ in range(4))
    part = FlowPart(
        names=NAMES,
        values=values,
        low=values,
        high=values,
        draws=tuple(draws),
        discrepancy=(0.0, 0.01, 0.02, 0.1),
        discrepancies=TOOLS["SIDES"] if seed % 2 else None,
    )
    shape = Shape(name="random", cores_first_socket=5, numa_per_socket=2, virtual=seed % 2 == 1)
    known = Calibration(run="", plan="", origin="virtual", kernel="triad", size=1, runs=1, n_low=2, n_high=4)
    document = Document(elbowroom="", created="", machine=shape, calibration=known, models=Models(flow=part))
    compare(library, document, tmp_path / "M.json", "flow", list(situations(shape, 5)))


def test_a_table_that_is_too_large_is_computed_when_asked(library: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    values, *draws = (TOOLS["flow_values"](rng) for _ in range(40))
    part = FlowPart(names=NAMES, values=values, low=values, high=values, draws=tuple(draws))
    shape = Shape(name="large", cores_first_socket=128, numa_per_socket=4)
    known = Calibration(
        run="", plan="", origin="measured", kernel="triad", size=1, runs=1, n_low=1, n_high=128
    )
    document = Document(elbowroom="", created="", machine=shape, calibration=known, models=Models(flow=part))
    asked = [
        Situation(comp_node=i, comm_node=j, n=n, n_other=127 - n)
        for i in (0, 5)
        for j in (0, 4)
        for n in (0, 64)
    ]
    compare(library, document, tmp_path / "M.json", "flow", asked)


def test_the_example_answers_its_question(tmp_path: Path) -> None:
    """Beside remote data henri's messages keep less than 90 % of their bandwidth from 5 cores on."""
    model = api.load_model("henri")
    path = model.save(tmp_path / "M.json")
    done = TOOLS["run"](str(TOOLS["built"]("predict_example")), str(path), "1", "1")
    response = model.curves(comp_node=1, comm_node=1)
    most = next(p.situation.n for p in response if p.comm_together.value < 0.9 * p.comm_alone.value) - 1
    assert done.stdout == f"henri: up to {most} of 18 cores\n"
    assert "beside a copy: the threshold model answers one group of cores" in done.stderr


def test_the_example_says_what_is_wrong() -> None:
    done = TOOLS["run"](str(TOOLS["built"]("predict_example")), "nowhere.json", "0", "0")
    assert done.returncode == 1
    assert "nowhere.json" in done.stderr
    assert "No such file" in done.stderr


CONSUMER = """cmake_minimum_required(VERSION 3.22)
project(consumer LANGUAGES C CXX)
find_package(elbowroom-predict 0.1 REQUIRED)
add_executable(consumer example.c)
target_link_libraries(consumer PRIVATE elbowroom::predict)
"""


def test_an_installed_library_is_found_by_cmake_and_pkg_config(tmp_path: Path) -> None:
    TOOLS["built"]("elbow_predict", "libelbow_predict.so")
    tree, prefix = TOOLS["tree"](), tmp_path / "prefix"
    assert (
        TOOLS["run"](
            "cmake", "--install", str(tree), "--prefix", str(prefix), "--component", "predict"
        ).returncode
        == 0
    )
    source = tmp_path / "consumer"
    source.mkdir()
    (source / "CMakeLists.txt").write_text(CONSUMER)
    (source / "example.c").write_text((TOOLS["ROOT"] / "lib" / "predict" / "example.c").read_text())
    # Ninja by name: a machine with elbowroom's packages alone has no make.
    where = ("-G", "Ninja", "-S", str(source), "-B", str(source / "build"))
    configure = ("cmake", *where, f"-DCMAKE_PREFIX_PATH={prefix}")
    for words in (configure, ("cmake", "--build", str(source / "build"))):
        done = TOOLS["run"](*words)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "usage:" in TOOLS["run"](str(source / "build" / "consumer")).stderr
    (result,) = prefix.rglob("elbow_predict.pc")
    response = TOOLS["run"]("pkg-config", "--variable=includedir", str(result)).stdout.strip()
    assert (Path(response) / "elbowroom" / "predict.h").exists()
    assert "-lelbow_predict" in TOOLS["run"]("pkg-config", "--libs", str(result)).stdout


def test_the_lines_of_the_page_link_a_program_that_finds_its_library(tmp_path: Path) -> None:
    """docs/reference/libraries.md: with -rpath, with LD_LIBRARY_PATH, and what is said without either."""
    TOOLS["built"]("elbow_predict", "libelbow_predict.so")
    prefix = tmp_path / "prefix"
    options = ("--prefix", str(prefix), "--component", "predict")
    assert TOOLS["run"]("cmake", "--install", str(TOOLS["tree"]()), *options).returncode == 0
    (package,) = prefix.rglob("elbow_predict.pc")
    assert "at run time by -Wl,-rpath" in package.read_text().splitlines()[0]
    page = (TOOLS["ROOT"] / "docs" / "reference" / "libraries.md").read_text(encoding="utf-8")
    _, with_rpath, with_variable = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    (tmp_path / "app.c").write_text((TOOLS["ROOT"] / "lib" / "predict" / "example.c").read_text())
    folder = (
        f"export PREFIX={prefix} PKG_CONFIG_PATH={package.parent}; cd {tmp_path}; unset LD_LIBRARY_PATH\n"
    )
    for lines in (with_rpath, with_variable):
        # The folder of libraries has another name on some systems.
        text = folder + lines.replace("$PREFIX/lib/pkgconfig", str(package.parent))
        done = TOOLS["run"]("sh", "-c", text.replace("$PREFIX/lib ", f"{package.parents[1]} "))
        assert "usage: ./app" in done.stderr, done.stderr
    done = TOOLS["run"]("sh", "-c", f"{folder}./app")
    assert "error while loading shared libraries: libelbow_predict.so.0.1" in done.stderr
