"""Files of this release: those that the schemas in schemas/ describe, and those of earlier releases that stay
readable.

The recorded run in tests/data/quick was written with version 1 of every schema.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import elbowroom
import trace_stand_ins
from elbowroom import cli
from elbowroom.model import document, published
from elbowroom.model.document import Document
from elbowroom.predict.fitting import Source, fit, of_published
from elbowroom.store import folder, journal
from elbowroom.store.folder import Manifest
from elbowroom.trace import overhead

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "quick"


def schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "schemas" / f"{name}.json").read_text())
    return found


def check(value: Any, rule: dict[str, Any], root: dict[str, Any], path: str = "$") -> None:
    """The part of JSON Schema that schemas/ uses: type, const, enum, required, properties, items, anyOf,
    $ref.
    """
    if "$ref" in rule:
        return check(value, root["$defs"][rule["$ref"].rsplit("/", 1)[1]], root, path)
    if "anyOf" in rule:
        return _any(value, rule["anyOf"], root, path)
    assert "const" not in rule or value == rule["const"], f"{path}: {value!r} is not {rule['const']!r}"
    assert "enum" not in rule or value in rule["enum"], f"{path}: {value!r} is none of {rule['enum']}"
    if "type" in rule:
        kinds = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float)}
        kinds |= {"boolean": bool, "null": type(None)}
        assert isinstance(value, kinds[rule["type"]]), f"{path}: {value!r} is no {rule['type']}"
    if isinstance(value, dict):
        missing = set(rule.get("required", ())) - value.keys()
        assert not missing, f"{path}: {missing} missing"
        for name, inner in value.items():
            if name in rule.get("properties", {}):
                check(inner, rule["properties"][name], root, f"{path}.{name}")
    if isinstance(value, list) and isinstance(rule.get("items"), dict):
        for number, inner in enumerate(value):
            check(inner, rule["items"], root, f"{path}[{number}]")
    return None


def _any(value: Any, rules: list[dict[str, Any]], root: dict[str, Any], path: str) -> None:
    reasons = []
    for rule in rules:
        try:
            check(value, rule, root, path)
        except AssertionError as error:
            reasons.append(str(error))
        else:
            return
    raise AssertionError("; ".join(reasons))


def test_the_recorded_manifest_keeps_to_its_schema() -> None:
    rules = schema("manifest-1")
    check(json.loads((DATA / "manifest.json").read_text()), rules, rules)


def test_every_line_of_the_recorded_journal_keeps_to_its_schema() -> None:
    rules = schema("samples-1")
    head, *lines = (DATA / "samples.jsonl").read_text().splitlines()
    check(json.loads(head), rules["$defs"]["header"], rules)
    for line in lines:
        check(json.loads(line), rules["$defs"]["entry"], rules)


def test_show_keeps_to_its_schema() -> None:
    rules = schema("show-1")
    check(json.loads(msgspec.json.encode(elbowroom.open(DATA).show())), rules, rules)


@pytest.mark.parametrize(("plan", "settings"), [("ring", {"n": "2"}), ("diffusion", {"nodes": "4"})])
def test_a_run_on_a_virtual_machine_keeps_to_the_schemas(
    tmp_path: Path, plan: str, settings: dict[str, str]
) -> None:
    where = tmp_path / "virtual"
    run = elbowroom.run(
        plan,
        machine="henri",
        overrides=elbowroom.Overrides(repeat=1, settings=settings),
        out=str(where),
        report=False,
        tell=lambda _: None,
    )
    for name, value in (
        ("manifest-1", json.loads((where / "manifest.json").read_text())),
        ("show-1", json.loads(msgspec.json.encode(run.show()))),
    ):
        check(value, schema(name), schema(name))
    rules = schema("samples-1")
    for line in (where / "samples.jsonl").read_text().splitlines()[1:]:
        check(json.loads(line), rules["$defs"]["entry"], rules)


def test_an_explanation_keeps_to_its_schema() -> None:
    rules = schema("explanation-1")
    found = json.loads(msgspec.json.encode(elbowroom.explain(DATA)))
    assert found["shown"]
    assert found["told"]
    check(found, rules, rules)
    del found["told"][0]["status"]
    with pytest.raises(AssertionError, match="status"):
        check(found, rules, rules)


def test_a_run_of_extraneous_accesses_keeps_to_the_schemas(site: Path, tmp_path: Path) -> None:
    settings = {"access_step": "100000", "window_sizes": "10", "who": "sender,receiver"}
    run = elbowroom.run(
        "ema",
        mpi=str(site),
        overrides=elbowroom.Overrides(repeat=1, settings=settings),
        out=str(tmp_path / "r"),
        report=False,
        tell=lambda _: None,
    )
    shown = json.loads(msgspec.json.encode(run.show()))
    rules = schema("show-1")
    check(shown, rules, rules)
    assert set(shown["extraneous"]) == set(rules["properties"]["extraneous"]["required"])
    rules = schema("samples-1")
    for line in (run.path / "samples.jsonl").read_text().splitlines()[1:]:
        check(json.loads(line), rules["$defs"]["entry"], rules)


@pytest.mark.parametrize(
    ("name", "part"),
    [("manifest-1", "points"), ("samples-1", "record"), ("show-1", "verdict")],
)
def test_a_file_that_lacks_a_required_part_breaks_its_schema(name: str, part: str) -> None:
    rules = schema(name)
    found: Any = {
        "manifest-1": lambda: json.loads((DATA / "manifest.json").read_text()),
        "samples-1": lambda: json.loads((DATA / "samples.jsonl").read_text().splitlines()[1]),
        "show-1": lambda: json.loads(msgspec.json.encode(elbowroom.open(DATA).show())),
    }[name]()
    del found[part]
    with pytest.raises(AssertionError, match=part):
        check(found, rules["$defs"]["entry"] if name == "samples-1" else rules, rules)


@pytest.fixture(scope="module")
def fitted(thesis_curves: Any) -> Document:
    """All models fitted to a few runs of henri."""
    curves = thesis_curves("henri", noise=0.01, ns=(1, 6, 12, 18))
    return fit(curves, Source(run="runs/henri", plan="model"), created="2026-01-01T00:00:00+00:00")


def test_a_fitted_model_keeps_to_its_schema(fitted: Document) -> None:
    rules = schema("model-1")
    found = json.loads(msgspec.json.encode(fitted))
    assert all(found["models"].values())
    check(found, rules, rules)


@pytest.mark.parametrize("name", published.names())
def test_a_published_model_keeps_to_its_schema(name: str) -> None:
    rules = schema("model-1")
    check(json.loads(msgspec.json.encode(of_published(name))), rules, rules)


@pytest.mark.parametrize(
    ("where", "part"),
    [(("machine",), "cores_first_socket"), (("models", "threshold", "local"), "alpha"), ((), "calibration")],
)
def test_a_model_that_lacks_a_required_part_breaks_its_schema(
    fitted: Document, where: tuple[str, ...], part: str
) -> None:
    rules = schema("model-1")
    found: Any = json.loads(msgspec.json.encode(fitted))
    inner = found
    for name in where:
        inner = inner[name]
    del inner[part]
    with pytest.raises(AssertionError, match=part):
        check(found, rules, rules)


JOB: dict[str, Any] = {
    "name": "stencil",
    "step": {"comp_bytes": "3GB", "comm_bytes": 1e9, "direction": "both", "separator": 0.1},
    "now": {"cores": 18, "comp_node": 0, "comm_node": 0, "overlap": True, "w": 0.0},
    "may": {"cores": ["1-8", 12], "comm_node": "every", "overlap": False, "w": "best"},
    "accelerator": {"bandwidth": 20e3},
}


def test_a_job_and_its_advice_keep_to_their_schemas() -> None:
    check(JOB, schema("job-1"), schema("job-1"))
    advice = elbowroom.load_model(ROOT / "tests" / "data" / "model-1.json").advise(JOB)
    rules = schema("advice-1")
    found = json.loads(msgspec.json.encode(advice))
    check(found, rules, rules)
    assert set(rules["properties"]) == set(found)
    assert rules["properties"]["version"]["const"] == found["version"]
    del found["advised"]["total"]
    with pytest.raises(AssertionError, match="total"):
        check(found, rules, rules)


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [("step", "direction", "up"), ("now", "cores", "all"), ("may", "overlap", "no")],
)
def test_a_wrong_job_breaks_its_schema(table: str, key: str, value: str) -> None:
    wrong = {**JOB, table: {**JOB[table], key: value}}
    with pytest.raises(AssertionError):
        check(wrong, schema("job-1"), schema("job-1"))


@pytest.mark.parametrize("name", ["check", "stat", "sync"])
def test_what_is_said_of_a_trace_keeps_to_its_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.setenv("ELBOWROOM_TRACE_READER", str(trace_stand_ins.reader(tmp_path)))
    assert cli.run(["trace", name, str(trace_stand_ins.recorded(tmp_path / "t")), "--json"]) == 0
    rules = schema(f"trace-{name}-1")
    found = json.loads(capfd.readouterr().out)
    check(found, rules, rules)
    for part in rules["required"]:
        with pytest.raises(AssertionError):
            check({key: value for key, value in found.items() if key != part}, rules, rules)


def test_what_recording_costs_keeps_to_its_schema() -> None:
    runs = [
        overhead.Run(None, one.name, r, 1 + 0.01 * r, 1.0)
        for r in range(3)
        for one in overhead.sets_of(("mpi",))
    ]
    found = overhead.analyse(runs, overhead.sets_of(("mpi",)), command=("app",))
    rules = schema("trace-overhead-1")
    check(json.loads(msgspec.json.encode(found)), rules, rules)
    assert set(rules["properties"]) == set(found.__struct_fields__)


def test_schemas_are_of_the_versions_that_are_written() -> None:
    assert schema("model-1")["properties"]["version"]["const"] == document.VERSION
    parts = {field.encode_name for field in msgspec.structs.fields(Document)}
    assert set(schema("model-1")["properties"]) == parts
    assert schema("manifest-1")["properties"]["version"]["const"] == folder.VERSION
    assert schema("samples-1")["$defs"]["header"]["properties"]["version"]["const"] == journal.VERSION
    names = {field.encode_name for field in msgspec.structs.fields(Manifest)}
    assert set(schema("manifest-1")["properties"]) == names


def test_a_run_of_version_1_is_still_read() -> None:
    run = elbowroom.open(DATA)
    assert len(run.points()) == 9
    assert run.table().num_rows > 0
    assert run.verdict.text


def test_a_model_of_version_1_is_still_read_and_answers_the_same() -> None:
    model = elbowroom.load_model(ROOT / "tests" / "data" / "model-1.json")
    assert model.document.names() == ("flow", "robust", "threshold")
    assert model.predict(15, 0, 0).flags == ("virtual",)
    said = model.predict(15, 0, 0, model="threshold")
    assert said.comp_alone.value == pytest.approx(66800.54069934294)
    assert said.comm_together.value == pytest.approx(10470.075360543591)
