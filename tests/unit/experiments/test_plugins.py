"""Experiments and plans of installed packages: used where they can be, named in a sentence where not."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from elbowroom import experiments
from elbowroom.errors import UsageError
from elbowroom.plan.file import Overrides, apply, load, names, plans, problems
from studies import SMALL, study

CODE = """
import msgspec
from elbowroom.experiments import get
from elbowroom.experiments.experiment import Experiment

class Keys(msgspec.Struct, frozen=True):
    depth: int = 1

sizes = get("sizes")
EXPERIMENT = Experiment(name="halo", question="Q?", expand=sizes.expand, findings=sizes.findings,
                        figures=sizes.figures, keys=Keys)
"""
PLAN = 'experiment = "halo"\nquestion = "Q?"\nsizes = [4, 64]\n\n[keys]\ndepth = 2\n'


def install(folder: Path, package: str, code: str, entries: str, plan: str = "") -> None:
    (folder / package).mkdir()
    (folder / package / "__init__.py").write_text(code)
    if plan:
        (folder / package / "halo.toml").write_text(plan)
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entries)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in ("plugin_one", "plugin_two", "halo"):
        sys.modules.pop(name, None)


def entries(package: str, name: str = "halo", plan: bool = False) -> str:
    text = f"[elbowroom.experiments]\n{name} = {package}:EXPERIMENT\n"
    return text + (f"[elbowroom.plans]\nhalo = {package}\n" if plan else "")


def test_an_installed_package_adds_an_experiment_its_plan_and_its_keys(site: Path) -> None:
    install(site, "plugin_one", CODE, entries("plugin_one", plan=True), PLAN)
    assert "halo" in experiments.names()
    assert "halo" in names()
    plan = load("halo")
    assert experiments.get("halo").keys_of(plan).depth == 2
    assert experiments.get("halo").keys_of(apply(plan, Overrides(settings={"keys.depth": "3"}))).depth == 3
    assert {point.size for point in experiments.expand(plan, SMALL).points} >= {4, 64}
    assert (experiments.problems(), problems()) == ((), ())


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [("width", "3", "no such key of halo"), ("depth", "deep", "expected int, got str")],
)
def test_a_key_that_the_experiment_does_not_have_is_refused(
    site: Path, key: str, value: str, words: str
) -> None:
    install(site, "plugin_one", CODE, entries("plugin_one", plan=True), PLAN)
    plan = apply(load("halo"), Overrides(settings={f"keys.{key}": value}))
    with pytest.raises(UsageError, match=words) as error:
        experiments.expand(plan, SMALL)
    assert error.value.field == f"keys.{key}"


def test_keys_of_an_experiment_without_any_are_refused() -> None:
    plan = apply(load("cores"), Overrides(settings={"keys.depth": "3"}))
    with pytest.raises(UsageError, match="has no keys of its own"):
        experiments.expand(plan, SMALL)


def test_a_package_that_fails_to_import_is_named_and_the_rest_works(site: Path) -> None:
    install(site, "plugin_one", "1 / 0", entries("plugin_one", plan=True), PLAN)
    [experiment] = experiments.problems()
    [plan] = problems()
    assert "ZeroDivisionError" in experiment
    assert "uninstall plugin_one" in experiment
    assert "ZeroDivisionError" in plan
    assert "cores" in {item.name for item in experiments.all()}
    assert "cores" in {item.name for item in plans()}
    with pytest.raises(UsageError, match="cannot be imported"):
        experiments.get("halo")


def test_a_name_that_two_packages_declare_is_used_from_neither(site: Path) -> None:
    for package in ("plugin_one", "plugin_two"):
        install(site, package, CODE, entries(package))
    [problem] = experiments.problems()
    assert problem.startswith("plugin_one and plugin_two declare 'halo' in elbowroom.experiments; none")
    assert "halo" not in experiments.names()
    with pytest.raises(UsageError, match="plugin_one and plugin_two declare 'halo'"):
        experiments.get("halo")


def test_a_name_of_elbowroom_itself_cannot_be_taken(site: Path) -> None:
    install(site, "plugin_one", CODE, entries("plugin_one", name="cores"))
    assert "which elbowroom itself has" in experiments.problems()[0]
    assert experiments.get("cores").name == "cores"


def test_what_is_no_experiment_is_named(site: Path) -> None:
    install(site, "plugin_one", "EXPERIMENT = 1", entries("plugin_one"))
    assert "is no Experiment named 'halo'" in experiments.problems()[0]


def test_the_example_of_the_documentation_is_a_whole_experiment(site: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/reference/extend.md").read_text(encoding="utf-8")
    project, plan = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    [code] = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    groups = tomllib.loads(project)["project"]["entry-points"]
    entries = [
        f"[{group}]\n{name} = {value}" for group, names in groups.items() for name, value in names.items()
    ]
    install(site, "halo", code, "\n".join(entries), plan)
    experiment, results = study("halo", SMALL, lambda _: (9000.0, 9000.0, 10_000.0, 5000.0))
    assert {item.size for item in results if item.role == "point"} == {64 << 10, 1 << 20}
    assert {finding.level for finding in experiment.findings(results, SMALL)} == {"interference"}
    assert [table.columns for table in experiment.tables(results, SMALL)] == [("size", "kept")]
    assert [figure.name for figure in experiment.figures(results, SMALL)] == ["halo"]
