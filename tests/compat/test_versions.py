"""Documents of this release keep to their JSON Schemas, and those of earlier releases stay readable.

The recorded run in tests/data/quick was written with version 1 of every schema.
"""

from __future__ import annotations

import gc
import json
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

import elbowroom
import trace_stand_ins
from elbowroom import cli
from elbowroom.api import schema, schema_names
from elbowroom.documents import DocumentFormat
from elbowroom.errors import UsageError
from elbowroom.models import published
from elbowroom.models.base import Provenance
from elbowroom.models.document import Document
from elbowroom.models.fit import fit
from elbowroom.models.published import of_published
from elbowroom.models.registry import fitted_models
from elbowroom.store.models import MODEL_FORMAT
from elbowroom.trace import overhead

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "quick"
GUIDE = ROOT / "docs" / "guide"


def check(value: Any, rule: dict[str, Any], root: dict[str, Any], path: str = "$") -> None:
    """The part of JSON Schema that msgspec writes, but for patterns and ranges."""
    if "$ref" in rule:
        check(value, root["$defs"][rule["$ref"].rsplit("/", 1)[1]], root, path)
    if "anyOf" in rule:
        _any(value, rule["anyOf"], root, path)
    for other in rule.get("allOf", ()):
        check(value, other, root, path)
    assert "const" not in rule or value == rule["const"], f"{path}: {value!r} is not {rule['const']!r}"
    assert "enum" not in rule or value in rule["enum"], f"{path}: {value!r} is none of {rule['enum']}"
    if "type" in rule:
        kinds = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float)}
        kinds |= {"boolean": bool, "null": type(None)}
        assert isinstance(value, kinds[rule["type"]]), f"{path}: {value!r} is no {rule['type']}"
    if isinstance(value, dict):
        missing = set(rule.get("required", ())) - value.keys()
        assert not missing, f"{path}: {missing} missing"
        known, others = rule.get("properties", {}), rule.get("additionalProperties", True)
        for name, inner in value.items():
            assert name in known or others is not False, f"{path}: {name} is unknown"
            if name in known or isinstance(others, dict):
                check(inner, known.get(name, others), root, f"{path}.{name}")
    if isinstance(value, list):
        rules = [*rule.get("prefixItems", ()), *[rule.get("items")] * len(value)]
        for number, (inner, item) in enumerate(zip(value, rules, strict=False)):
            if isinstance(item, dict):
                check(inner, item, root, f"{path}[{number}]")


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
    rules = schema("manifest")
    check(json.loads((DATA / "manifest.json").read_text()), rules, rules)


def test_every_line_of_the_recorded_journal_keeps_to_its_schema() -> None:
    rules = schema("samples")
    head, *lines = (DATA / "samples.jsonl").read_text().splitlines()
    check(json.loads(head), rules["$defs"]["JournalHeader"], rules)
    for line in lines:
        check(json.loads(line), rules["$defs"]["WrittenLine"], rules)


def test_show_keeps_to_its_schema() -> None:
    rules = schema("show")
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
        ("manifest", json.loads((where / "manifest.json").read_text())),
        ("show", json.loads(msgspec.json.encode(run.show()))),
    ):
        check(value, schema(name), schema(name))
    rules = schema("samples")
    for line in (where / "samples.jsonl").read_text().splitlines()[1:]:
        check(json.loads(line), rules["$defs"]["WrittenLine"], rules)


def test_an_explanation_keeps_to_its_schema() -> None:
    rules = schema("explanation")
    result = json.loads(msgspec.json.encode(elbowroom.explain(DATA)))
    assert result["shown"]
    assert result["statements"]
    check(result, rules, rules)
    del result["statements"][0]["status"]
    with pytest.raises(AssertionError, match="status"):
        check(result, rules, rules)


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
    rules = schema("show")
    check(shown, rules, rules)
    assert set(shown["extraneous"]) == set(rules["$defs"]["AccessResults"]["required"])
    rules = schema("samples")
    for line in (run.path / "samples.jsonl").read_text().splitlines()[1:]:
        check(json.loads(line), rules["$defs"]["WrittenLine"], rules)


@pytest.mark.parametrize(
    ("name", "part"),
    [("manifest", "points"), ("samples", "record"), ("show", "verdict")],
)
def test_a_file_that_lacks_a_required_part_breaks_its_schema(name: str, part: str) -> None:
    rules = schema(name)
    result: Any = {
        "manifest": lambda: json.loads((DATA / "manifest.json").read_text()),
        "samples": lambda: json.loads((DATA / "samples.jsonl").read_text().splitlines()[1]),
        "show": lambda: json.loads(msgspec.json.encode(elbowroom.open(DATA).show())),
    }[name]()
    del result[part]
    with pytest.raises(AssertionError, match=part):
        check(result, rules["$defs"]["WrittenLine"] if name == "samples" else rules, rules)


@pytest.fixture(scope="module")
def fitted(thesis_curves: Any) -> Document:
    """All models fitted to a few runs of henri."""
    curves = thesis_curves("henri", noise=0.01, ns=(1, 6, 12, 18))
    return fit(curves, Provenance(run="runs/henri", plan="model"), created="2026-01-01T00:00:00+00:00")


def test_a_fitted_model_keeps_to_its_schema(fitted: Document) -> None:
    rules = schema("model")
    result = json.loads(msgspec.json.encode(fitted))
    assert all(result["models"].values())
    check(result, rules, rules)


@pytest.mark.parametrize("name", published.names())
def test_a_published_model_keeps_to_its_schema(name: str) -> None:
    rules = schema("model")
    check(json.loads(msgspec.json.encode(of_published(name))), rules, rules)


@pytest.mark.parametrize(
    ("where", "part"),
    [(("machine",), "cores_first_socket"), (("models", "threshold", "local"), "alpha"), ((), "calibration")],
)
def test_a_model_that_lacks_a_required_part_breaks_its_schema(
    fitted: Document, where: tuple[str, ...], part: str
) -> None:
    rules = schema("model")
    result: Any = json.loads(msgspec.json.encode(fitted))
    inner = result
    for name in where:
        inner = inner[name]
    del inner[part]
    with pytest.raises(AssertionError, match=part):
        check(result, rules, rules)


FITTED = str(ROOT / "tests" / "data" / "model-1.json")
RATIOS = ("--t-comm", "1", "--l-comp", "1.2", "--l-comm", "2")
SITUATION = ("--cores", "7", "--comp-node", "0", "--comm-node", "0")

JOB: dict[str, Any] = {
    "name": "stencil",
    "step": {"comp_bytes": "3GB", "comm_bytes": 1e9, "direction": "both", "separator": 0.1},
    "now": {"cores": 18, "comp_node": 0, "comm_node": 0, "overlap": True, "w": 0.0},
    "may": {"cores": ["1-8", 12], "comm_node": "every", "overlap": False, "w": "best"},
    "accelerator": {"bandwidth": 20e3},
}


def test_a_job_and_its_advice_keep_to_their_schemas() -> None:
    check(JOB, schema("job"), schema("job"))
    advice = elbowroom.load_model(FITTED).advise(JOB)
    rules = schema("advice")
    result = json.loads(msgspec.json.encode(advice))
    check(result, rules, rules)
    assert set(rules["properties"]) == set(result)
    assert rules["properties"]["version"]["const"] == result["version"]
    del result["advised"]["total"]
    with pytest.raises(AssertionError, match="total"):
        check(result, rules, rules)


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [("step", "direction", "up"), ("now", "cores", "all"), ("may", "overlap", "no")],
)
def test_a_wrong_job_breaks_its_schema(table: str, key: str, value: str) -> None:
    wrong = {**JOB, table: {**JOB[table], key: value}}
    with pytest.raises(AssertionError):
        check(wrong, schema("job"), schema("job"))


def test_a_job_of_an_accelerator_keeps_to_the_schema_of_jobs() -> None:
    job = tomllib.loads((GUIDE / "gpu-job.toml").read_text(encoding="utf-8"))
    check(job, schema("job"), schema("job"))
    for key, value in (("victim", "prime"), ("ways", ["nvlink"]), ("bytes", None), ("speed", 1)):
        with pytest.raises(AssertionError):
            check({"gpu": {**job["gpu"], key: value}}, schema("job"), schema("job"))


@pytest.mark.parametrize("name", ["check", "stat", "sync"])
def test_what_is_said_of_a_trace_keeps_to_its_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.setenv("ELBOWROOM_TRACE_READER", str(trace_stand_ins.reader(tmp_path)))
    assert cli.run(["trace", name, str(trace_stand_ins.recorded(tmp_path / "t")), "--json"]) == 0
    rules = schema(f"trace-{name}")
    result = json.loads(capfd.readouterr().out)
    check(result, rules, rules)
    for part in rules["required"]:
        with pytest.raises(AssertionError):
            check({key: value for key, value in result.items() if key != part}, rules, rules)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("calibrate", ["calibrate", "--machine", "henri", "--points", "3", "--run-out", "r", "--no-report"]),
        ("compare", ["compare", str(DATA), str(DATA)]),
        ("doctor", ["doctor"]),
        ("dry-run", ["run", "quick", "--dry-run", "--machine", "henri"]),
        ("files", ["export", str(DATA), "--format", "csv", "-o", "samples.csv"]),
        ("list", ["list", str(DATA.parent)]),
        ("machine", ["machine", "show", "henri"]),
        ("machines", ["machine", "list"]),
        ("overlap", ["predict-step", "--t-comp", "2", *RATIOS]),
        ("overlap", ["predict-step", "--work", "9", "--p-comp", "2", "--p-acc", "3", "--w", "0.2", *RATIOS]),
        ("overlap", ["predict-step", "henri", *SITUATION, "--comp-bytes", "1GB", "--comm-bytes", "1GB"]),
        ("overlap", ["predict-step", "--table", "langguth2018"]),
        ("plans", ["plans"]),
        ("prediction", ["predict", "henri"]),
        ("prediction", ["predict", "henri", *SITUATION]),
        ("prediction", ["predict", FITTED, *SITUATION, "--direction", "receive"]),
        ("simulate", ["simulate-memory", "--machine", "henri", "--cores", "1,9"]),
        ("simulated-node", ["simulate-memory", "--machine", "henri", "--parameters"]),
        ("trace-merge", ["trace", "merge", "t", "-o", "t.json"]),
        ("trace-record", ["trace", "record", "-o", "new", "--", "./app"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_command_prints_keeps_to_its_schema(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    name: str,
    words: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if words[0] == "trace":
        monkeypatch.setenv("ELBOWROOM_TRACE_READER", str(trace_stand_ins.reader(tmp_path)))
        monkeypatch.setenv("ELBOWROOM_TRACE_LIBRARIES", str(tmp_path))
        trace_stand_ins.recorded(tmp_path / "t")
        trace_stand_ins.program(tmp_path)
    at = words.index("--") if "--" in words else len(words)
    assert cli.run([*words[:at], "--json", *words[at:]]) == 0
    printed = json.loads(capfd.readouterr().out)
    assert list(printed)[:2] == ["schema", "version"]
    rules = schema(name)
    check(printed, rules, rules)
    for part in _required(printed, rules):
        with pytest.raises(AssertionError):
            check({key: value for key, value in printed.items() if key != part}, rules, rules)


def _required(printed: dict[str, Any], rules: dict[str, Any]) -> list[str]:
    """The keys that a document has to have; of several types, those of the most general one that fits."""
    kinds = [rules["$defs"][kind["$ref"].rsplit("/", 1)[1]] for kind in rules.get("anyOf", ())] or [rules]
    fitting = [kind for kind in kinds if set(kind["required"]) <= set(printed)]
    return list(min(fitting, key=lambda kind: len(kind["required"]))["required"])


def test_an_error_keeps_to_its_schema(capfd: pytest.CaptureFixture[str]) -> None:
    rules = schema("error")
    for words in (["predict", "henry"], ["predict-step", "--t-comp", "inf", *RATIOS], ["show"]):
        code = cli.run([*words, "--json"])
        printed = json.loads(capfd.readouterr().out)
        check(printed, rules, rules)
        assert printed["exit_code"] == code == 2


def test_what_recording_costs_keeps_to_its_schema() -> None:
    runs = [
        overhead.TimedRun(None, one.name, r, 1 + 0.01 * r, 1.0)
        for r in range(3)
        for one in overhead.sets_of(("mpi",))
    ]
    result = overhead.analyse(runs, overhead.sets_of(("mpi",)), command=("app",))
    rules = schema("trace-overhead")
    check(json.loads(msgspec.json.encode(result)), rules, rules)
    assert set(rules["properties"]) == set(result.__struct_fields__)


@pytest.mark.parametrize("name", schema_names())
def test_every_document_names_its_schema_and_version(name: str) -> None:
    result = schema(name)
    roots = [result["$defs"][kind["$ref"].rsplit("/", 1)[1]] for kind in result.get("anyOf", ())] or [result]
    for root in roots[:1] if name == "samples" else [] if name in ("job", "broadcast-bench") else roots:
        assert root["properties"]["schema"] == {"enum": [f"elbowroom/{name}"]}
        assert root["properties"]["version"] == {"const": 2 if name == "diagnosis" else 1}
        assert {"schema", "version"} <= set(root["required"])


def test_a_document_of_no_name_is_refused_with_the_names() -> None:
    with pytest.raises(UsageError, match="did you mean 'manifest'"):
        schema("manifesto")


def test_a_schema_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["schema"]) == 0
    assert capfd.readouterr().out.split() == list(schema_names())
    assert cli.run(["schema", "trace-stat"]) == 0
    assert json.loads(capfd.readouterr().out) == schema("trace-stat")


def test_a_run_of_version_1_is_still_read() -> None:
    run = elbowroom.open(DATA)
    assert len(run.points()) == 9
    assert len(run.samples()) > 0
    assert run.verdict.text


@pytest.mark.parametrize("folder", sorted((DATA.parent / "runs").iterdir()), ids=lambda folder: folder.name)
def test_a_run_of_each_experiment_of_release_0_1_is_still_read(folder: Path) -> None:
    stored = json.loads((folder / "manifest.json").read_text())
    run = elbowroom.open(folder)
    for plain, point in zip(stored["points"], run.manifest.points, strict=True):
        assert plain.items() <= json.loads(msgspec.json.encode(point.plain())).items()
    assert [point.status for point in run.points()] == ["ok"] * len(stored["points"])
    lines = len((folder / "samples.jsonl").read_text().splitlines()) - 1
    assert run.manifest.starts == 1
    assert len(run.samples()) > lines
    assert run.show()["points"]


def test_a_model_of_version_1_is_still_read_and_answers_the_same() -> None:
    model = elbowroom.load_model(FITTED)
    assert fitted_models(model.document) == ("flow", "robust", "threshold")
    assert model.predict(15, 0, 0).flags == ("virtual",)
    answer = model.predict(15, 0, 0, model="threshold")
    assert answer.comp_alone.value == pytest.approx(66800.54069934294)
    assert answer.comm_together.value == pytest.approx(10470.075360543591)


def test_a_file_of_a_newer_version_is_refused_with_both_versions(tmp_path: Path) -> None:
    formats = [item for item in gc.get_objects() if isinstance(item, DocumentFormat)]
    names = {"manifest", "model", "profile", "study", "network", "times"}
    assert names <= {item.name for item in formats}
    for item in formats:
        file = tmp_path / "file.json"
        file.write_text(json.dumps({"schema": item.schema, "version": 99, "elbowroom": "9.0.0"}))
        both = rf"{item.schema} version 99; .* reads up to version {item.version}\)"
        with pytest.raises(UsageError, match=both) as caught:
            item.read(file)
        assert "elbowroom 9.0.0" in caught.value.hint


@pytest.mark.parametrize("version", [None, 0, -1, 1.5, "1", True])
def test_a_file_without_a_version_is_refused_with_the_versions_that_are_read(
    version: object, tmp_path: Path
) -> None:
    file = tmp_path / "m.json"
    file.write_text(json.dumps({"schema": "elbowroom/model", "version": version}))
    with pytest.raises(UsageError, match="has no version of schema elbowroom/model") as caught:
        MODEL_FORMAT.read(file)
    assert "reads versions 1 to" in caught.value.hint
