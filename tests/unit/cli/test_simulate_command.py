"""`elbowroom simulate-memory`: tables, JSON, figures, refusals; and what a curve shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from elbowroom import api, cli
from elbowroom.errors import ElbowroomError
from elbowroom.launch import build
from elbowroom.virtual.simulated import onset_of
from simulated_curves import curve


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    try:
        build.simulator()
    except ElbowroomError as error:
        pytest.skip(f"the simulator cannot be built here: {error}")


@pytest.mark.parametrize(
    ("kept", "first"),
    [
        ([(1, 1.0, 1.0), (2, 1.0, 0.96)], "nobody"),
        ([(1, 1.0, 0.9), (2, 0.9, 0.8)], "communication"),
        ([(1, 0.9, 1.0), (2, 0.8, 0.9)], "computation"),
        ([(1, 0.9, 1.0), (2, 0.8, 1.0)], "computation"),
        ([(1, 1.0, 1.0), (2, 0.9, 0.9)], "both"),
    ],
)
def test_who_loses_more_than_five_percent_at_fewer_cores_loses_first(
    kept: list[tuple[int, float, float]], first: str
) -> None:
    assert onset_of(curve(*kept)).first == first


def test_a_finding_tells_where_the_loss_begins_and_whether_it_still_grows() -> None:
    observed = onset_of(curve((3, 1.0, 0.99), (6, 1.0, 0.9), (9, 0.9, 0.8), (12, 0.85, 0.79)))
    assert (observed.comp_from, observed.comm_from) == (9, 6)
    assert (observed.comp_least, observed.comm_least) == pytest.approx((0.85, 0.79))
    assert observed.floor == pytest.approx(0.01)
    assert (observed.station, observed.use) == ("controller of node 0", 0.5)


def run(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    assert cli.run(["simulate-memory", *words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_the_command_prints_a_row_for_each_number_of_cores(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["simulate-memory", "--machine", "henri", "--cores", "1,18", "--comp-node", "1"]) == 0
    text = capsys.readouterr().out
    assert "Computations on node 1, one endless message on node 0" in text
    assert "Neither side loses more than 5% with up to 18 cores; at worst" in text


def test_its_json_says_what_the_python_interface_says(capsys: pytest.CaptureFixture[str]) -> None:
    messages = run(
        capsys, "--machine", "henri:published", "--cores", "4-5", "--kernel", "copy", "--intensity", "0.5",
        "--direction", "both", "--sizes", "4KiB,64MB", "--comm-threads", "2", "--copy", "8000",
        "--set", "jitter=0.2", "--seed", "3",
    )  # fmt: skip
    result = api.simulate(
        "henri", cores=(4, 5), kernel="copy", intensity=0.5, direction="both", sizes=(4096, 64_000_000),
        comm_threads=2, copy=8000.0, settings=[("jitter", "0.2")], seed=3,
    )  # fmt: skip
    assert messages["schema"] == "elbowroom/simulate"
    assert messages["virtual"] is True
    assert messages["node"]["jitter"] == 0.2
    for curve_told, one in zip(messages["curves"], result.curves, strict=True):
        assert curve_told["rows"] == json.loads(msgspec.json.encode(one.rows))
    names = [item.name for item in result.curves[0].rows[0].latencies]
    assert names == ["computation", "receive", "send", "copy"]


def test_a_figure_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("henri.svg")
    assert cli.run(["simulate-memory", "--machine", "henri", "--cores", "1,9,18", "-o", str(path)]) == 0
    assert "henri: computations on node 0, communications on node 0" in path.read_text(encoding="utf-8")
    assert f"figure: {path}" in capsys.readouterr().out


def test_the_parameters_are_listed_with_their_sources(capsys: pytest.CaptureFixture[str]) -> None:
    messages = run(capsys, "--machine", "henri", "--parameters", "--set", "row=50")
    values = {item["name"]: item for item in messages["parameters"]}
    assert values["row"]["value"] == 50
    assert "typical" in values["row"]["source"]
    assert values["core_rate_local"]["value"] == 4455.4


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--machine", "hneri"], "machine 'hneri': no such virtual machine; did you mean 'henri'?"),
        (
            ["--machine", "henri", "--cores", "19"],
            "cores 19: henri does not have that many cores on its first socket; 1",
        ),
        (["--machine", "henri", "--cores", "0"], "cores 0: henri does not have that many cores"),
        (["--machine", "henri", "--sizes", "0"], "sizes '0': a size is at least 1 B"),
        (["--machine", "henri", "--comp-node", "2"], "comp_node 2: henri has 2 NUMA nodes; ask for 0 to 1"),
        (
            ["--machine", "henri", "--comm-threads", "0"],
            "comm_threads 0: is not a number of communication threads",
        ),
        (["--machine", "henri", "--intensity", "-1"], "intensity -1.0: is not an arithmetic intensity"),
        (
            ["--machine", "henri", "--intensity", "1e9"],
            "intensity 1000000000.0: leaves 6956.52 ms between two lines of 64 B, too long",
        ),
        (["--machine", "henri", "--copy", "1e-9"], "copy 1e-09: leaves 6.4e+07 ms between two lines"),
        (["--machine", "henri", "--copy", "0"], "copy 0.0: is not a bandwidth"),
        (["--machine", "henri", "--set", "lines=3"], "set 'lines': no such parameter of a node"),
        (["--machine", "henri", "--set", "row"], "set 'row': is not KEY=VALUE"),
        (["--machine", "henri", "--set", "row=-1"], "row '-1': is not a number in range; 0 to 10000 ns"),
        (
            ["--machine", "henri", "--parameters", "--cores", "3"],
            "cores '3': cannot be combined with --parameters",
        ),
        (
            ["--machine", "henri", "--parameters", "-o", "f.png"],
            "out 'f.png': cannot be combined with --parameters",
        ),
        (
            ["--machine", "henri", "--cores", "3", "-o", "f.gif"],
            "out 'f.gif': is not a picture",
        ),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_a_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["simulate-memory", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_without_a_compiler_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ELBOWROOM_SIMULATOR", raising=False)
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert cli.run(["simulate-memory", "--machine", "dahu", "--cores", "1"]) == 1
    assert "apt-get install g++ cmake ninja-build nlohmann-json3-dev" in capsys.readouterr().err
