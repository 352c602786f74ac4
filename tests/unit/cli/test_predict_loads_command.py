"""`elbowroom predict` and `fit` for loads, as they are typed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from elbowroom import cli
from texts import widest

HENRI = ("predict", "henri", "--cores", "17", "--comp-node", "0", "--comm-node", "0")
FILE = "[[computing]]\nsocket = 0\nnode = 0\ncount = 17\n[messages]\nnode = 0\n"


def test_a_load_is_printed_with_both_sides(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run([*HENRI, "--comm-threads", "1"]) == 0
    out = capfd.readouterr().out
    assert "17 cores of socket 0 computing on data of node 0; messages of 64 MB into node 0" in " ".join(
        out.split()
    )
    assert widest(out) <= 80


def test_a_file_says_the_same_as_options(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "load.toml").write_text(FILE)
    assert cli.run([*HENRI, "--direction", "receive", "--json"]) == 0
    said = json.loads(capfd.readouterr().out)
    assert cli.run(["predict", "henri", "--load", str(tmp_path / "load.toml"), "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == said
    assert cli.run([*HENRI, "--json"]) == 0
    situation = json.loads(capfd.readouterr().out)
    assert said["comm_together"] == situation["comm_together"]
    assert said["schema"] == situation["schema"] == "elbowroom/prediction"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*HENRI, "--intensity", "0.5"), "fit FLOW"),
        ((*HENRI, "--direction", "send"), "fit FLOW"),
        ((*HENRI, "--group", "4@0"), "SOCKET:CORES@NODE"),
        ((*HENRI, "--copy", "fast@0"), "RATE@NODE"),
        ((*HENRI, "--direction", "send", "-o", "f.png"), "cannot be combined with a load"),
        ((*HENRI, "--load", "load.toml"), "is in the file"),
        (("predict", "henri", "--load", "missing.toml"), "cannot be read"),
        (("predict", "henri", "--cores", "3", "--comp-node", "0", "--direction", "send"), "--comm-node"),
        (("predict", "henri", "--comm-node", "0", "--intensity", "1"), "--cores N"),
        (("predict", "henri", "--cores", "3", "--comm-node", "0", "--comm-threads", "2"), "--comp-node NODE"),
        (("predict", "henri", "--comp-node", "0", "--comm-node", "0", "--comm-threads", "2"), "--cores N"),
    ],
)
def test_a_wrong_load_is_refused_with_what_mends_it(
    words: tuple[str, ...],
    message: str,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("load.toml").write_text("[messages]\nsize = 64000000\nnode = 0\n")
    assert cli.run(list(words)) == 2
    assert message in capfd.readouterr().err


def test_runs_of_two_machines_are_not_fitted_together(
    tmp_path: Path, curves_csv: Callable[..., Path], capfd: pytest.CaptureFixture[str]
) -> None:
    runs = []
    for name in ("henri", "bora"):
        runs.append(str(tmp_path / f"run-{name}"))
        assert cli.run(["import", str(curves_csv(name, ns=(1, 9, 18))), "-o", runs[-1]]) == 0
    capfd.readouterr()
    assert cli.run(["fit", *runs, "-o", str(tmp_path / "M.json")]) == 2
    assert "is from another machine than the first run: name is 'bora'" in capfd.readouterr().err
    assert not (tmp_path / "M.json").exists()
