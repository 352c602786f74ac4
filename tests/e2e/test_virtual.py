"""Plans on virtual machines, from the command line to the report: no MPI, no compiler, nothing measured."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from elbowroom import cli
from elbowroom.models import published
from elbowroom.store.folder import RunFolder
from texts import widest

FEW = ["--repeat", "5"]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """Runs the command line where no program can be found, and returns (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    for name in ("ELBOWROOM_PROBE", "ELBOWROOM_MPIRUN"):
        monkeypatch.delenv(name, raising=False)

    def invoke(*words: str) -> tuple[int, str, str]:
        code = cli.run(list(words))
        out, err = capfd.readouterr()
        return code, out, err

    return invoke


def told(run: Any, *words: str) -> dict[str, Any]:
    """What a command prints as JSON; few repetitions are no reason to fail."""
    code, out, err = run(*words, "--json")
    assert code in (0, 3), err
    found: dict[str, Any] = json.loads(out)
    return found


def medians(shown: dict[str, Any]) -> dict[str, tuple[float, float]]:
    return {
        point["id"]: (point["comm"]["alone"]["median"], point["comm"]["together"]["median"])
        for point in shown["points"]
    }


def test_quick_answers_in_full_and_says_virtual(run: Any) -> None:
    code, out, _ = run("run", "quick", "--machine", "henri", "--out", "r", "--json")
    shown = json.loads(out)
    assert code == 0
    assert shown["machine"]["virtual"] is True
    assert shown["verdict"]["trusted"] is True
    assert shown["verdict"]["interference"] is True
    assert shown["verdict"]["text"].startswith("Virtual machine henri, nothing was measured: Yes")
    assert all(point["status"] == "ok" and "virtual" in point["flags"] for point in shown["points"])
    control = next(point for point in shown["points"] if point["kernel"] == "prime")
    assert control["comp"]["kept"]["value"] == pytest.approx(1, abs=0.02)


def test_everything_that_is_written_says_virtual(run: Any, tmp_path: Path) -> None:
    _, out, _ = run("run", "quick", "--machine", "henri", *FEW, "--out", "r")
    assert "henri (virtual)" in out.splitlines()[0]
    assert "nothing was measured" in out
    assert widest(out) <= 80
    manifest = json.loads((tmp_path / "r" / "manifest.json").read_text())
    assert manifest["launcher"] == "virtual:henri"
    assert manifest["hello"]["virtual"]["definition"]["origin"] == "Swartvagher 2022, Table E.6"
    assert manifest["measured_s"] == 0
    assert "ElbowroomVirtual" in (tmp_path / "r" / "topology.xml").read_text()
    report = (tmp_path / "r" / "report.html").read_text()
    for part in ("Nothing was measured. A virtual machine computed", "(virtual machine)", "· virtual"):
        assert part in report
    assert run("export", "r", "--format", "csv", "-o", "r.csv")[0] == 0
    assert all("virtual" in line for line in (tmp_path / "r.csv").read_text().splitlines()[1:])
    assert told(run, "compare", "r", "r")["a"]["virtual"] is True


@pytest.mark.parametrize("plan", ["cores", "sizes", "intensity", "frequency", "ring"])
def test_every_plan_is_answered(run: Any, plan: str) -> None:
    counts = ["--set", "n=1,18"] if plan in ("cores", "ring") else []
    shown = told(run, "run", plan, "--machine", "bora", "--repeat", "5", *counts, "--no-report")
    assert shown["points"]
    assert {point["status"] for point in shown["points"]} == {"ok"}
    assert shown["verdict"]["interference"] is (plan != "frequency")


def test_what_cannot_be_answered_is_a_note_with_the_reason(run: Any) -> None:
    shown = told(run, "run", "frequency", "--machine", "henri", *FEW, "--no-report")
    notes = {note["what"]: note["reason"] for note in shown["notes"]}
    assert notes["constant core frequencies"] == "a virtual machine has no frequencies"
    code, _, err = run("run", "quick", "--machine", "henri", "--set", "scheduling=true")
    assert code == 2
    assert "none is simulated" in err


def test_placement_finds_the_published_table(run: Any) -> None:
    """Table 1 of Denis et al. 2021 for henri: far data lose more and sooner than near data, and TRIAD suffers
    beside large messages only.
    """
    shown = told(run, "run", "placement", "--machine", "henri", "--set", "n=1,6,12,18", *FEW, "--no-report")
    point = {
        (point["comp_node"], point["comm_node"], point["size"], point["n"]): point
        for point in shown["points"]
        if point["role"] == "point" and point["comm_core"] == 35
    }
    near, far = point[0, 0, 64_000_000, 18], point[1, 1, 64_000_000, 18]
    assert far["comm"]["kept"]["value"] < near["comm"]["kept"]["value"] < 0.95
    assert far["comp"]["kept"]["value"] < near["comp"]["kept"]["value"] < 0.95
    sooner = (point[node, node, 64_000_000, 6]["comm"]["kept"]["high"] < 0.97 for node in (0, 1))
    assert tuple(sooner) == (False, True)
    assert point[0, 0, 4, 18]["comp"]["kept"]["value"] == pytest.approx(1, abs=0.02)
    assert point[0, 0, 4, 18]["comm"]["alone"]["median"] == pytest.approx(1.67, rel=0.02)
    # A row for every pair of nodes and place of the communication thread.
    assert sum(finding["key"].startswith("table-triad") for finding in shown["findings"]) == 8


@pytest.mark.parametrize("name", published.names())
def test_the_plan_model_redraws_the_published_parameters(run: Any, name: str) -> None:
    known = published.load(name)
    nodes = f"comp_nodes=0,{known.numa_per_socket}"
    few = ("--repeat", "1", "--set", "control=false", "--set", nodes, "--set", "comm_nodes=same")
    shown = told(run, "run", "model", "--machine", name, "--noise", "0", *few, "--no-report")
    for side, node in ((known.used("local"), 0), (known.used("remote"), known.numa_per_socket)):
        points = [point for point in shown["points"] if point["comp_node"] == node]
        assert len(points) == known.cores_first_socket
        first = next(point for point in points if point["n"] == 1)
        assert first["comp"]["alone"]["median"] == pytest.approx(side.b_comp_seq)
        assert first["comm"]["alone"]["median"] == pytest.approx(side.b_comm_seq)
        worst = min(point["comm"]["kept"]["value"] for point in points)
        assert worst == pytest.approx(side.alpha, abs=1e-6) or worst > side.alpha


def test_a_machine_with_four_nodes_answers_every_placement(run: Any) -> None:
    shown = told(run, "run", "model", "--machine", "henrisubnuma", "--repeat", "1", "--no-report")
    places = {(point["comp_node"], point["comm_node"]) for point in shown["points"]}
    assert len(places) == 16
    assert len(shown["points"]) == 16 * 18 + 1


def test_the_same_seed_gives_the_same_results_and_another_does_not(run: Any) -> None:
    common = ("run", "quick", "--machine", "henri", *FEW, "--no-report")
    first, again, other = (
        medians(told(run, *common, "--seed", seed, "--out", f"r{place}"))
        for place, seed in enumerate(("3", "3", "4"))
    )
    assert first == again
    assert first != other


def test_the_credits_answer_otherwise_than_the_published_curves(run: Any) -> None:
    common = ("run", "quick", *FEW, "--no-report", "--noise", "0")
    curves = medians(told(run, *common, "--machine", "henri", "--out", "a"))
    network = medians(told(run, *common, "--machine", "henri:credits", "--out", "b"))
    assert curves.keys() == network.keys()
    assert curves != network


def test_a_dry_run_tells_points_and_no_command(run: Any, tmp_path: Path) -> None:
    found = told(run, "run", "model", "--machine", "henri", "--dry-run")
    assert found["machine"]["virtual"] is True
    assert found["commands"] == []
    assert found["measured_seconds"] == 0
    assert list(tmp_path.iterdir()) == []


def cut(folder: Path, keep: int) -> None:
    journal = folder / "samples.jsonl"
    journal.write_bytes(b"\n".join(journal.read_bytes().split(b"\n")[:keep]) + b"\n")


def test_a_run_that_was_cut_is_resumed_to_the_same_results(run: Any, tmp_path: Path) -> None:
    whole = told(run, "run", "quick", "--machine", "henri:credits", "--seed", "3", *FEW, "--out", "r")
    shutil.copytree(tmp_path / "r", tmp_path / "half")
    cut(tmp_path / "half", 20)
    resumed = told(run, "run", "--resume", "half")
    assert medians(resumed) == medians(whole)
    assert len(RunFolder.open(tmp_path / "half").entries()) == len(RunFolder.open(tmp_path / "r").entries())


def test_a_machine_that_changed_since_is_not_resumed(run: Any, tmp_path: Path) -> None:
    text = run("machine", "show", "henri", "--toml")[1]
    (tmp_path / "mine.toml").write_text(text)
    run("run", "quick", "--machine", "mine.toml", *FEW, "--out", "r", "--no-report")
    cut(tmp_path / "r", 20)
    (tmp_path / "mine.toml").write_text(text.replace("alpha = 0.915", "alpha = 0.9"))
    code, _, err = run("run", "--resume", "r")
    assert code == 2
    assert "the virtual machine has changed since" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--launcher", "local"], "launcher 'local': cannot be given with --machine"),
        (["--mpi", "embedded"], "mpi 'embedded': cannot be given with --machine"),
        (["--hosts", "a,b"], "hosts 'a,b': cannot be given with --machine"),
        (["--noise", "0.5"], "noise 0.5: is not a relative standard deviation"),
        (["--noise", "nan"], "noise 'nan': is not a percentage"),
        (["--comp-node", "2"], "comp_node 2: NUMA node 2 does not exist; nodes here: 0-1"),
        (["--comp-cores", "35-37"], "comp_cores 36: core 36 does not exist; cores here: 0-35"),
    ],
)
def test_what_does_not_go_with_a_virtual_machine_is_refused(run: Any, words: list[str], said: str) -> None:
    code, out, err = run("run", "quick", "--machine", "henri", *words, "--json")
    assert code == 2
    assert said in err
    assert json.loads(out)["error"]["hint"]


def test_noise_without_a_virtual_machine_is_refused(run: Any) -> None:
    code, _, err = run("run", "quick", "--noise", "0.01")
    assert code == 2
    assert "is only valid with a virtual machine" in err


def test_n_outside_the_machine_is_a_note_and_no_point_an_error(run: Any) -> None:
    shown = told(run, "run", "model", "--machine", "henri", "--set", "n=16,17,18,19", *FEW, "--no-report")
    assert {point["n"] for point in shown["points"]} == {16, 17, 18}
    assert {note["what"] for note in shown["notes"]} == {"n = 19"}


def test_the_machines_are_listed_and_shown(run: Any) -> None:
    found = told(run, "machine", "list")
    assert {*published.names(), "h200-nvl"} == {one["name"] for one in found["machines"]}
    assert all(one["virtual"] for one in found["machines"])
    shown = told(run, "machine", "show", "henrisubnuma")
    assert shown["remote"]["n_par_max"] == 2
    for words in (["machine", "list"], ["machine", "show", "pyxis"]):
        _, out, _ = run(*words)
        assert "irtual" in out
        assert widest(out) <= 80


def test_an_unknown_machine_is_refused_with_near_names(run: Any) -> None:
    code, out, err = run("machine", "show", "henry", "--json")
    assert code == 2
    assert "did you mean 'henri'?" in err
    assert json.loads(out)["error"]["field"] == "machine"


def test_a_machine_made_of_a_run_answers_like_it(run: Any) -> None:
    common = ("--noise", "0", "--repeat", "1", "--no-report")
    before = told(run, "run", "model", "--machine", "bora", *common, "--out", "a")
    made = told(run, "machine", "from-run", "a", "-o", "mine.toml")
    assert "(virtual)" in made["origin"]
    after = told(run, "run", "model", "--machine", "mine.toml", *common, "--out", "b")
    old, new = medians(before), medians(after)
    assert old.keys() == new.keys()
    # Data of both on one node: with two, the published equations let messages lose what nobody gets.
    same = [name for name in old if "comp0-comm0" in name or "comp1-comm1" in name]
    off = [abs(b / a - 1) for name in same for a, b in zip(old[name], new[name], strict=True)]
    assert max(off) < 0.005


def test_imported_curves_make_the_same_machine_as_the_run_they_came_from(run: Any) -> None:
    run("run", "model", "--machine", "occigen", "--repeat", "1", "--no-report", "--out", "a")
    assert run("export", "a", "--format", "curves", "-o", "a.csv")[0] == 0
    run("import", "a.csv", "-o", "b")
    measured, imported = (told(run, "machine", "from-run", name, "-o", f"{name}.toml") for name in "ab")
    for side in ("local", "remote"):
        assert imported[side] == pytest.approx(measured[side], rel=1e-6)


def test_a_run_without_curves_makes_no_machine(run: Any, tmp_path: Path) -> None:
    run("run", "quick", "--machine", "henri", *FEW, "--out", "r", "--no-report", "--sizes", "4")
    code, _, err = run("machine", "from-run", "r", "-o", "mine.toml")
    assert code == 2
    assert err.strip()
    assert not (tmp_path / "mine.toml").exists()


def test_compare_fails_for_a_large_loss_only_and_refuses_runs_without_a_common_point(run: Any) -> None:
    """Exit code 1 is for CI; runs without a common point and a percentage that is none are wrong."""
    few = ("--repeat", "5", "--set", "n=4", "--set", "control=false", "--no-report")
    run("run", "cores", "--machine", "henri", *few, "--kernels", "triad", "--out", "a")
    assert run("compare", "a", "a", "--fail-above", "5%")[0] == 0
    code, out, _ = run("compare", "a", "a", "a", "--json")
    assert (code, json.loads(out)["significant"], len(json.loads(out)["others"])) == (0, 0, 1)
    run("run", "cores", "--machine", "henri", *few, "--kernels", "copy", "--out", "b")
    code, _, err = run("compare", "a", "b")
    assert code == 2
    assert "has no point in common with a" in err
    code, _, err = run("compare", "a", "a", "--fail-above", "much")
    assert code == 2
    assert "fail_above 'much': is not a percentage" in err
