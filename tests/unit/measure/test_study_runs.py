"""The runs of a study: on several numbers of hosts, with sizes and grids of the allocation, and how they are
started.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import elbowroom
import papers
from elbowroom.errors import UsageError
from elbowroom.experiments.plans import load
from elbowroom.machine.topology import Machine
from elbowroom.measure import study as measured
from elbowroom.measure.source import Live, Where
from elbowroom.measure.study import StudyRequest, StudyRun, overrides, runs_of
from elbowroom.points.factorizations import parse_grid
from elbowroom.points.probe import ProbeStart
from elbowroom.studies import STUDIES, needs
from elbowroom.studies.document import PlannedExhibit, planned_exhibits
from studies import machine
from worlds import ALL


def cluster(hosts: int) -> Machine:
    return machine(36, 4, 2, nic=0, hosts=hosts)


def settings(paper: str, name: str, hosts: int, *, quick: bool = False) -> dict[str, str]:
    request = StudyRequest(study=paper, out="", quick=quick)
    item = next(item for item in STUDIES.get(paper).measurements if item.name == name)
    return overrides(request, item, cluster(hosts)).settings


@pytest.mark.parametrize(
    ("hosts", "counts"), [(1, [1]), (2, [2]), (3, [2, 3]), (8, [2, 4, 8]), (12, [2, 4, 8, 12])]
)
def test_the_solver_runs_on_several_numbers_of_hosts_of_an_allocation(hosts: int, counts: list[int]) -> None:
    runs = [
        run
        for run in runs_of(STUDIES.get("langguth2018"), cluster(hosts))
        if run.measurement.name == "diffusion"
    ]
    assert [run.hosts for run in runs] == counts
    assert runs[-1].name == "diffusion"
    assert [run.name for run in runs[:-1]] == [f"diffusion-{count}" for count in counts[:-1]]


def test_all_numbers_of_hosts_share_one_mesh() -> None:
    assert settings("langguth2018", "diffusion", 8)["cells"] == "12000000"
    assert settings("langguth2018", "diffusion", 500)["cells"] == "115000000"


@pytest.mark.parametrize(
    ("launcher", "where", "env", "words"),
    [
        ("mpiexec", Where(hosts=("n1", "n2", "n3", "n4")), {}, ("n1", "n2")),
        ("srun", Where(), {"SLURM_JOB_ID": "1", "SLURM_JOB_NUM_NODES": "4"}, ("--nodes=2", "--ntasks=2")),
        (
            "srun",
            Where(hosts=("n1", "n2", "n3", "n4")),
            {"SLURM_JOB_ID": "1", "SLURM_JOB_NUM_NODES": "4"},
            ("--nodes=2", "--nodelist=n1,n2"),
        ),
    ],
)
def test_a_run_on_some_hosts_is_started_on_the_first_ones(
    monkeypatch: pytest.MonkeyPatch, launcher: str, where: Where, env: dict[str, str], words: tuple[str, ...]
) -> None:
    monkeypatch.setattr("elbowroom.launch.build.probe", lambda mpi: Path("probe"))
    some = Live(launcher, msgspec.structs.replace(where, most_hosts=2), env)
    line = some.command(ProbeStart(2))
    assert all(word in line for word in words)
    assert "n3" not in line


@pytest.mark.parametrize(
    ("hosts", "grid"), [(1, "2x2"), (4, "2x2"), (15, "3x3"), (64, "8x8"), (196, "14x14")]
)
def test_the_grid_of_cholesky_is_the_largest_square_that_the_hosts_fill(hosts: int, grid: str) -> None:
    assert settings("swartvagher2022", "cholesky", hosts)["grid"] == grid


@pytest.mark.parametrize(("hosts", "grid"), [(1, "1x4"), (4, "1x4"), (196, "1x196")])
def test_the_grid_of_qr_is_a_row_and_its_matrices_are_three_times_as_wide_as_high(
    hosts: int, grid: str
) -> None:
    chosen = settings("swartvagher2022", "qr", hosts)
    assert (chosen["grid"], chosen["columns_per_row"]) == (grid, "3")


@pytest.mark.parametrize("name", ["cholesky", "qr"])
@pytest.mark.parametrize("hosts", [4, 64, 196])
@pytest.mark.parametrize("quick", [False, True])
def test_several_matrices_have_several_tiles_for_each_process(name: str, hosts: int, quick: bool) -> None:
    chosen = settings("swartvagher2022", name, hosts, quick=quick)
    rows, columns = parse_grid(chosen["grid"])
    tiles = [int(word) for word in chosen["tiles"].split(",")]
    wide = int(chosen.get("columns_per_row", "1"))
    assert len(tiles) == 3
    assert all(count * count * wide >= 1.5 * rows * columns for count in tiles)
    assert all(count * wide >= columns for count in tiles)


@pytest.mark.parametrize(("hosts", "grids"), [(1, "1x4,2x2"), (196, "1x196,2x98,4x49,7x28,14x14")])
def test_the_shapes_of_the_grid_of_qr_go_from_a_row_to_a_square(hosts: int, grids: str) -> None:
    assert settings("swartvagher2022", "qr-grids", hosts)["grid"] == grids


@pytest.mark.parametrize("hosts", [1, 4, 196])
def test_tiles_of_all_sizes_divide_the_matrix_of_qr(hosts: int) -> None:
    chosen = settings("swartvagher2022", "qr-tiles", hosts)
    assert "tiles" not in chosen
    assert all(int(chosen["order"]) % int(block) == 0 for block in chosen["block"].split(","))


def test_two_processes_of_cholesky_share_each_host() -> None:
    rows, columns = parse_grid(settings("swartvagher2022", "cholesky-two-a-node", 200)["grid"])
    assert (rows, columns) == (20, 20)


def test_variants_of_cholesky_are_compared_on_one_matrix() -> None:
    for name, axis in (("priorities", "priorities"), ("early", "early"), ("at-once", "hold")):
        chosen = settings("swartvagher2022", f"cholesky-{name}", 64)
        assert chosen[axis] == "true,false"
        assert chosen["tiles"] == "64"


def test_tan_and_jarvis_are_timed_as_in_their_paper() -> None:
    for name in ("accesses", "beyond-the-last-cache", "bystanders"):
        assert settings("tan2012", name, 1)["timing"] == "recv"
    assert settings("tan2012", "bystanders", 1)["bystanders"] == "processes"


def test_each_size_of_accesses_is_a_point_of_figure_1() -> None:
    study, _, evidence = papers.evidence("tan2012", ALL["tan2012"].paper["averages"], ["accesses"])
    figure = next(item for item in study.exhibits if item.label == "Fig. 1a")
    drawn = figure.draw(evidence)
    assert [series.drawn for item in drawn for series in item.series] == ["points"]
    assert len(drawn[0].series[0].x) == 201


def planned(paper: str, here: Machine, unobserved: dict[str, str] | None = None) -> dict[str, PlannedExhibit]:
    return {item.label: item for item in planned_exhibits(STUDIES.get(paper), here, {}, unobserved)}


@pytest.mark.parametrize(("hosts", "shown"), [(1, False), (2, False), (3, True), (8, True)])
def test_a_figure_over_nodes_is_shown_only_with_two_numbers_of_them(hosts: int, shown: bool) -> None:
    for label in ("Fig. 8", "Fig. 9"):
        figure = planned("langguth2018", cluster(hosts))[label]
        assert figure.shown is shown
        assert shown or any("numbers of nodes" in reason for reason in figure.reasons)


def test_figures_over_nodes_join_the_runs_of_all_numbers_of_hosts() -> None:
    study, here, evidence = papers.evidence("langguth2018", ALL["langguth2018"].paper["paper"])
    figures = {item.label: item.draw(evidence) for item in study.exhibits}
    for label in ("Fig. 8", "Fig. 9"):
        assert figures[label][0].series[0].x == (2.0, 4.0, 8.0)
    assert figures["Fig. 3"]
    assert not needs.several_scales(here)


def test_frequencies_that_cannot_be_read_are_not_shown() -> None:
    quiet = {"frequency": "no cpufreq"}
    figure = planned("denis2021", cluster(2), quiet)["Fig. 2"]
    assert not figure.shown
    assert "frequency: no cpufreq" in figure.reasons
    assert figure.judged == figure.statements - 1
    assert planned("denis2021", cluster(2))["Fig. 2"].shown


@pytest.mark.parametrize("paper", STUDIES.names())
def test_a_dry_run_shows_what_the_study_shows(paper: str, tmp_path: Path) -> None:
    """On a virtual machine, whose study is quick enough to be made."""
    only = {
        "denis2021": ("Fig. 2", "Fig. 3b, 3c", "Fig. 4a", "Fig. 5a", "Fig. 5f", "Table 1", "Fig. 9"),
        "swartvagher2022": ("Fig. 4.9, 4.10a", "Fig. 6.2 to 6.10", "Table 6.1", "Fig. 5.3"),
    }.get(paper, ())
    options: dict[str, Any] = {"only": only, "quick": True, "machine": "henri"}
    planned = elbowroom.study_plan(paper, **options)
    done = elbowroom.study(paper, out=str(tmp_path / "s"), tell=lambda _: None, **options)
    shown = {item.label: item.figures + item.tables > 0 for item in done.exhibits}
    assert {item.label: item.shown for item in planned.exhibits} == shown


def test_starts_turbo_and_governor_reach_the_plans_that_have_them() -> None:
    request = StudyRequest(study="denis2021", out="", starts=2, turbo="off", governor="performance")
    here = cluster(2)
    for item in STUDIES.get("denis2021").measurements:
        chosen = overrides(request, item, here)
        assert chosen.starts == 2
        about = load(item.plan).experiment == "frequency"
        assert (chosen.settings.get("turbo"), chosen.settings.get("governors")) == (
            ("off", "performance") if about else (None, None)
        )
    run = StudyRun(name="x", measurement=STUDIES.get("denis2021").measurements[1], hosts=2)
    command = measured.command(request, run, here)
    assert "--starts 2" in command
    assert "--set turbo=off" in command


def test_several_starts_cannot_be_limited_in_time(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be given with --budget") as error:
        elbowroom.study(
            "denis2021", out=str(tmp_path / "s"), machine="henri", starts=2, budget=60.0, tell=lambda _: None
        )
    assert error.value.field == "starts"
    assert not (tmp_path / "s").exists()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "s"
    elbowroom.study(
        "denis2021", out=str(path), only=("Fig. 2",), quick=True, machine="henri", tell=lambda _: None
    )
    return path


def changed(path: Path, **fields: Any) -> None:
    document = json.loads(path.read_bytes())
    path.write_text(json.dumps(document | fields), encoding="utf-8")


def test_a_study_folder_says_which_release_wrote_it(folder: Path) -> None:
    assert json.loads((folder / "study.json").read_bytes())["elbowroom"] == elbowroom.__version__


def test_a_run_that_another_release_planned_otherwise_is_refused(folder: Path) -> None:
    changed(folder / "study.json", elbowroom="0.0.9")
    manifest = folder / "runs" / "prime-counting" / "manifest.json"
    plan = json.loads(manifest.read_bytes())["plan"]
    changed(manifest, plan=plan | {"sizes": [4]})
    before = (folder / "results.json").read_bytes()
    with pytest.raises(
        UsageError, match=r"prime-counting was measured by elbowroom 0\.0\.9 .*\(sizes\)"
    ) as error:
        elbowroom.study(resume=str(folder), tell=lambda _: None)
    assert "-o FOLDER" in error.value.hint
    assert (folder / "results.json").read_bytes() == before


def test_a_study_folder_of_a_newer_release_is_refused_by_its_name(folder: Path) -> None:
    changed(folder / "study.json", version=9, elbowroom="9.9.9")
    with pytest.raises(UsageError, match="was written by a newer release") as error:
        elbowroom.study(resume=str(folder), tell=lambda _: None)
    assert "9.9.9" in error.value.hint


@pytest.mark.parametrize("where", [{"machine": 5}, {"most_hosts": "two"}, {"hosts": "a"}])
def test_a_study_folder_with_a_wrong_place_is_refused_with_the_field(
    folder: Path, where: dict[str, Any]
) -> None:
    changed(folder / "study.json", where=where)
    with pytest.raises(UsageError, match=r"study\.json") as error:
        elbowroom.study(resume=str(folder), tell=lambda _: None)
    assert next(iter(where)) in str(error.value)


def test_a_study_folder_without_the_settings_of_this_release_goes_on(folder: Path) -> None:
    document = json.loads((folder / "study.json").read_bytes())
    for name in ("starts", "turbo", "governor", "elbowroom"):
        del document[name]
    (folder / "study.json").write_text(json.dumps(document), encoding="utf-8")
    assert elbowroom.study(resume=str(folder), tell=lambda _: None).exhibits
