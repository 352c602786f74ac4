"""Import, fit, evaluate, predict, export through the command line, on curves of the thesis' machines."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from elbowroom import cli
from elbowroom.models.curves import STREAMS
from elbowroom.store.curves import read_curves, same, write_curves
from texts import widest

VECTORS = Path(__file__).parents[1] / "data" / "threshold_vectors.json"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """Runs the command line in an empty folder and returns (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def invoke(*words: str) -> tuple[int, str, str]:
        code = cli.run(list(words))
        out, err = capfd.readouterr()
        return code, out, err

    return invoke


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, thesis_curves: Any) -> Path:
    """The curves of henri (1 % noise) imported as `r` and fitted as `M.json`, once."""
    folder = tmp_path_factory.mktemp("fitted")
    write_curves(folder / "henri.csv", thesis_curves("henri", noise=0.01))
    with contextlib.chdir(folder):
        assert cli.run(["import", "henri.csv", "-o", "r"]) == 0
        assert cli.run(["fit", "r", "-o", "M.json"]) == 0
    return folder


@pytest.fixture
def fitted(run: Any, files: Path) -> Any:
    """As `run`, with a copy of `files`."""
    shutil.copytree(files, Path.cwd(), dirs_exist_ok=True)
    return run


def found(answer: tuple[int, str, str]) -> Any:
    code, out, err = answer
    assert code == 0, err
    return json.loads(out)


def refused(answer: tuple[int, str, str], *parts: str) -> None:
    code, out, err = answer
    assert code == 2
    for part in parts:
        assert part in err
    assert out == "" or json.loads(out)["exit_code"] == 2


def test_a_published_machine_is_predicted_as_the_reference_says(run: Any) -> None:
    bora = json.loads(VECTORS.read_text())["machines"]["bora"]["predicted"]["local"]
    words = ("predict", "bora", "--comp-node", "0", "--comm-node", "0", "--faithful", "--json")
    said = found(run(*words))["predictions"]
    assert [item["n"] for item in said] == list(range(1, 19))
    for stream in ("comp_alone", "comp_together", "comm_together"):
        assert [item[stream]["value"] for item in said] == pytest.approx(bora[stream], abs=0.1)


def test_one_situation_is_one_object_with_four_intervals_at_its_top(fitted: Any) -> None:
    for source in ("M.json", "henri"):
        said = found(
            fitted("predict", source, "--cores", "9", "--comp-node", "1", "--comm-node", "1", "--json")
        )
        assert (said["schema"], said["version"], said["unit"]) == ("elbowroom/prediction", 1, "MB/s")
        assert (said["machine"], said["n"], said["n_other"]) == ("henri", 9, 0)
        assert said["model"] == {"M.json": "flow", "henri": "threshold"}[source]
        for stream in STREAMS:
            assert said[stream].keys() == {"value", "low", "high"}
            assert said[stream]["low"] <= said[stream]["value"] <= said[stream]["high"]


def test_a_fitted_model_is_near_what_it_was_fitted_to(fitted: Any) -> None:
    table = found(fitted("evaluate", "r", "M.json", "--json"))
    assert table["schema"] == "elbowroom/evaluate"
    lines = {line["model"]: line for line in table["lines"]}
    assert {"flow", "robust", "threshold", "no contention", "plain max-min"} <= lines.keys()
    assert lines["flow"]["average"] < 0.03
    assert lines["flow"]["average"] < lines["no contention"]["average"]
    assert lines["threshold"]["comm"]["samples"] < lines["no contention"]["comm"]["samples"]
    assert table["published"]["average"] == 2.32
    assert any("this very run" in note for note in table["notes"])


def test_evaluate_prints_the_thesis_beside_the_models_in_80_columns(fitted: Any) -> None:
    code, out, _ = fitted("evaluate", "r", "henri")
    assert code == 0
    assert widest(out) <= 80
    assert any(line.startswith("thesis, Table 6.1") and "2.32" in line for line in out.splitlines())


def test_fit_prints_parameters_intervals_origin_and_doubts(fitted: Any) -> None:
    code, out, err = fitted("fit", "r")
    assert code == 0, err
    assert (Path("r") / "models" / "henri.json").is_file()
    assert widest(out) <= 80
    for part in (
        "threshold, local data",
        "threshold, remote data",
        "flow",
        "t_par_max",
        "core_local",
        "90 %",
    ):
        assert part in out
    assert "imported" in out
    assert "72 runs of memset_nt" in out
    assert "Limits of the model:" in out


def test_fit_as_json_is_what_it_wrote(run: Any, curves_csv: Any) -> None:
    run("import", str(curves_csv("henri", ns=(1, 9, 18))), "-o", "r")
    told = found(run("fit", "r", "-o", "M.json", "--json"))
    assert told["file"] == "M.json"
    assert told["model"] == json.loads(Path("M.json").read_text())


def test_an_imported_run_is_shown_reported_compared_and_exported(run: Any, curves_csv: Any) -> None:
    source = curves_csv("henri", ns=(1, 9, 18))
    code, out, err = run("import", str(source), "-o", "r")
    assert code == 0, err
    assert "Imported values; whether the machine was quiet is unknown" in " ".join(out.split())
    shown = found(run("show", "r", "--json"))
    assert shown["verdict"]["trusted"] is False
    assert all("imported" in point["flags"] for point in shown["points"])
    assert run("report", "r")[0] == 0
    page = (Path("r") / "report.html").read_text()
    assert "Another program measured the values" in page
    assert run("compare", "r", "r")[0] == 0
    for kind in ("parquet", "csv", "json"):
        assert run("export", "r", "--format", kind, "-o", f"r.{kind}")[0] == 0
    assert run("export", "r", "--format", "curves", "-o", "again.csv")[0] == 0
    assert same(read_curves(Path("again.csv")), read_curves(source))


def test_export_says_which_points_are_no_curves(run: Any, recorded: Path) -> None:
    code, _, err = run("export", "recorded", "--format", "curves", "-o", "c.csv")
    assert code == 0
    assert "left out: 2 points, measured as latency" in err
    assert len(read_curves(Path("c.csv")).rows) == 1


def test_import_and_export_are_each_others_inverse(run: Any, curves_csv: Any) -> None:
    run("import", str(curves_csv("henrisubnuma", ns=(1, 9))), "-o", "a")
    run("export", "a", "--format", "curves", "-o", "a.csv")
    assert run("import", "a.csv", "-o", "b")[0] == 0
    run("export", "b", "--format", "curves", "-o", "b.csv")
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()


def test_what_was_measured_may_be_said_at_import(run: Any, curves_csv: Any) -> None:
    source = str(curves_csv("henri", ns=(1, 9, 18)))
    shown = found(run("import", source, "-o", "r", "--kernel", "triad", "--size", "4MiB", "--json"))
    assert {(point["kernel"], point["size"]) for point in shown["points"]} == {("triad", 4 << 20)}
    assert shown["notes"] == []
    refused(run("import", source, "-o", "s", "--kernel", "traid"), "did you mean 'triad'")
    assert not Path("s").exists()


def test_an_import_never_overwrites(run: Any, curves_csv: Any) -> None:
    source = str(curves_csv("henri", ns=(1,)))
    run("import", source, "-o", "r")
    refused(run("import", source, "-o", "r"), "already exists")


def test_a_bad_file_leaves_no_run(run: Any, curves_csv: Any) -> None:
    source = curves_csv("henri", ns=(1, 2))
    text = source.read_text().replace("0,0,2,", "0,0,nan,")
    source.write_text(text)
    refused(run("import", str(source), "-o", "r", "--json"), "line", "is not a whole number")
    assert not Path("r").exists()


def test_one_placement_is_fitted_and_what_it_cannot_predict_is_said(run: Any, curves_csv: Any) -> None:
    run("import", str(curves_csv("henri", noise=0.01, places=[(0, 0)])), "-o", "r")
    code, out, err = run("fit", "r", "-o", "M.json")
    assert code == 0, err
    assert "threshold, remote: its data was not measured" in " ".join(out.split())
    refused(
        run(
            "predict",
            "M.json",
            "--cores",
            "4",
            "--comp-node",
            "1",
            "--comm-node",
            "1",
            "--model-kind",
            "threshold",
        ),
        "calibrated without remote data",
    )
    said = found(run("predict", "M.json", "--all", "--model-kind", "threshold", "--json"))
    assert {(item["comp_node"], item["comm_node"]) for item in said["predictions"]} == {(0, 0)}


def test_fewer_points_than_parameters_are_refused(run: Any, curves_csv: Any) -> None:
    run("import", str(curves_csv("henri", ns=(4, 5), places=[(0, 0)])), "-o", "r")
    refused(run("fit", "r", "-o", "M.json"), "counts of computing cores needed")
    assert not Path("M.json").exists()


def test_a_model_of_another_machine_is_refused(fitted: Any, curves_csv: Any) -> None:
    fitted("import", str(curves_csv("bora", ns=(1, 9, 18))), "-o", "b")
    refused(fitted("evaluate", "b", "M.json"), "from another machine", "'henri'", "elbowroom fit")
    refused(fitted("evaluate", "r", "billy"), "from another machine")


def test_a_model_of_a_newer_release_is_refused(fitted: Any) -> None:
    raw = json.loads(Path("M.json").read_text())
    Path("M.json").write_text(json.dumps({**raw, "version": 2, "elbowroom": "9.0.0"}))
    refused(fitted("predict", "M.json"), "written by a newer release", "elbowroom 9.0.0")


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("--cores", "19", "--comp-node", "0", "--comm-node", "0"), ("cores 19", "ask for 0 to 18")),
        (("--cores", "-1", "--comp-node", "0", "--comm-node", "0"), ("cores -1", "ask for 0 to 18")),
        (("--cores", "4", "--comp-node", "2", "--comm-node", "0"), ("comp_node 2", "ask for 0 to 1")),
        (("--cores", "4", "--comp-node", "0", "--comm-node", "-1"), ("comm_node -1", "ask for 0 to 1")),
        (("--cores", "4", "--comp-node", "0"), ("comm_node", "give both nodes")),
        (("--all", "--comp-node", "0", "--comm-node", "0"), ("cannot be combined with nodes",)),
        (("--model-kind", "flow"), ("it has: threshold",)),
        (("--model-kind", "flow", "--faithful"), ("flow",)),
        (("--cores-other", "2", "--cores", "4", "--comp-node", "0", "--comm-node", "0"), ("one socket",)),
        (("--stacked",), ("add -o FIGURE.png",)),
        (("-o", "f.pdf"), (".svg or .png",)),
        (("--cores", "4", "-o", "f.png"), ("a figure goes over all n",)),
    ],
    ids=lambda value: " ".join(value),
)
def test_what_cannot_be_predicted_is_refused(
    run: Any, words: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    refused(run("predict", "henri", *words), *parts)


def test_a_machine_that_is_none_is_refused_with_the_nearest(run: Any) -> None:
    refused(run("predict", "henry", "--json"), "did you mean 'henri'")
    refused(run("predict", "models/M.json"), "cannot be read")


def test_the_tables_for_people_keep_to_80_columns_and_mark_extrapolation(run: Any, curves_csv: Any) -> None:
    run("import", str(curves_csv("henri", noise=0.01, ns=range(1, 17))), "-o", "r")
    run("fit", "r", "-o", "M.json")
    one = run("predict", "M.json", "--cores", "17", "--comp-node", "0", "--comm-node", "0")[1]
    assert "extrapolated: beyond what was measured" in one
    several = run("predict", "M.json")[1]
    assert widest(one + several) <= 80
    assert "extrapolated * (8 of 72)" in several
    assert "Data of the computation on node 1, message buffers on node 0" in several


def test_both_sockets_are_predicted_and_evaluated(run: Any) -> None:
    words = ("--set", "pool=machine", "--set", "n=1,4,9,18,22,27,35", "--repeat", "2")
    assert run("run", "model", "--machine", "henri:credits", *words, "--out", "r", "--no-report")[0] in (0, 3)
    assert run("fit", "r", "-o", "M.json")[0] == 0
    place = ("--comp-node", "0", "--comm-node", "0")
    said = found(run("predict", "M.json", "--cores", "18", "--cores-other", "9", *place, "--json"))
    assert (said["n"], said["n_other"], said["model"]) == (18, 9, "flow")
    assert "extrapolated" not in said["flags"]
    code, out, _ = run("evaluate", "r", "M.json")
    assert code == 0
    assert "threshold: does not know 12 of the 28 runs" in out
    assert widest(out) <= 80
    refused(
        run("predict", "M.json", "--cores-other", "9", *place, "-o", "f.png"), "is only valid with --cores"
    )


def test_figures_are_drawn_with_and_without_points(fitted: Any) -> None:
    for words in (
        ("predict", "henri", "-o", "all.svg"),
        ("predict", "henri", "--comp-node", "0", "--comm-node", "0", "--stacked", "-o", "stacked.svg"),
        ("evaluate", "r", "M.json", "-o", "measured.svg"),
        ("evaluate", "r", "M.json", "-o", "measured-stacked.svg", "--stacked", "--comp-node", "1"),
    ):
        code, out, err = fitted(*words)
        assert code == 0, err
        file = next(word for word in words if word.endswith(".svg"))
        assert file in out.splitlines()
        assert Path(file).read_text().lstrip().startswith("<?xml")
    assert "henri: predicted lines with 90 % intervals" in Path("all.svg").read_text()
    assert "henri: measured points, predicted lines" in Path("measured.svg").read_text()


def test_python_says_the_same_as_the_command_line(fitted: Any) -> None:
    import elbowroom

    said = found(
        fitted("predict", "M.json", "--cores", "9", "--comp-node", "0", "--comm-node", "1", "--json")
    )
    model = elbowroom.load_model("M.json")
    assert model.predict(9, 0, 1).comm_together.value == said["comm_together"]["value"]
    assert elbowroom.evaluate("r", model).table.rows == 72


def test_the_page_of_an_import_claims_no_interval_no_protocol_and_no_core(run: Any, curves_csv: Any) -> None:
    run("import", str(curves_csv("henri", ns=(1, 9, 18), places=[(0, 0)])), "-o", "r")
    run("report", "r")
    page = (Path("r") / "report.html").read_text()
    table = page.partition("<noscript>")[2].partition("</noscript>")[0]
    assert "comp 0 · comm 0 · core unknown" in table
    assert "[" not in table
    assert "Each repetition of a point measures" not in page
    assert "The transport of the messages is unknown" in page
    assert "Imported: trust unknown" in page
    assert "Too noisy" not in page


def test_linear_algebra_has_one_thread_and_the_environment_is_left_alone() -> None:
    code = (
        "import os; from elbowroom.launch.processes import one_thread; "
        "before = dict(os.environ); one_thread(); "
        "import numpy; "
        "numpy.ones((300, 300)) @ numpy.ones((300, 300)); "
        "print(len(os.listdir('/proc/self/task')), before == dict(os.environ))"
    )
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
    clean = {name: value for name, value in os.environ.items() if name not in names}
    said = subprocess.run([sys.executable, "-c", code], env=clean, capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["1", "True"]
