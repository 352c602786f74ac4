"""Bundles of studies: everything in one file, two of them compared, and what is refused."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from elbowroom import __version__, cli
from elbowroom.errors import UsageError
from elbowroom.verbs.bundles import BUNDLE, compare_bundles, unpack


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with bundles a.zip and b.zip of one study, measured with other noise, and slides.zip."""
    folder = tmp_path_factory.mktemp("bundles")
    words = ["study", "denis2021", "--machine", "henri", "--quick", "--only", "Fig. 2"]
    for name, seed in (("a", "1"), ("b", "2")):
        out = ["-o", str(folder / name), "--seed", seed, "--bundle", str(folder / f"{name}.zip")]
        assert cli.run([*words, *out]) in (0, 3)
    out = ["-o", str(folder / "slides"), "--bundle", str(folder / "slides.zip")]
    assert cli.run(["study", "koop2009", *out]) == 0
    return folder


def changed(place: Path, target: Path, change: Callable[[str, bytes], bytes]) -> Path:
    """A copy of a.zip whose files are changed."""
    with zipfile.ZipFile(place / "a.zip") as old, zipfile.ZipFile(target, "w") as new:
        for item in old.infolist():
            new.writestr(item.filename, change(item.filename, old.read(item)))
    return target


def head(place: Path, target: Path, **values: object) -> Path:
    """A copy of a.zip with other values in bundle.json."""

    def change(name: str, data: bytes) -> bytes:
        return json.dumps(json.loads(data) | values).encode() if name == BUNDLE else data

    return changed(place, target, change)


def test_a_bundle_has_samples_topology_versions_commands_and_a_citation(place: Path, tmp_path: Path) -> None:
    bundle = unpack(place / "a.zip", tmp_path)
    (run,) = bundle.software
    names = {name.rpartition("/")[2] for name in bundle.files if name.startswith(f"runs/{run}/")}
    assert {"manifest.json", "topology.xml"} <= names
    assert names & {"samples.jsonl", "samples.parquet"}
    assert {"study.json", "results.json", "report.html"} <= set(bundle.files)
    assert bundle.software[run]["packages"]["numpy"]
    assert bundle.commands[run].startswith("elbowroom run frequency")
    assert __version__ in bundle.citation
    assert "Denis" in bundle.citation
    for name in bundle.files:
        assert (tmp_path / name).read_bytes() == (place / "a" / name).read_bytes()


def test_a_bundle_does_not_differ_from_itself(place: Path) -> None:
    compared = compare_bundles(place / "a.zip", place / "a.zip", 0.01)
    assert compared.conditions == compared.verdicts == compared.only_a == compared.only_b == ()
    assert [run.significant for run in compared.runs] == [0]
    assert compared.runs[0].values > 0


def test_two_bundles_show_the_values_that_changed(
    place: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    assert cli.run(["compare", "a.zip", "b.zip", "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert document["schema"] == "elbowroom/bundle-comparison"
    assert document["study"] == "denis2021"
    assert document["runs"][0]["values"] > 0
    assert document["sentence"].endswith("verdicts.")


def test_what_bundles_were_conditions_is_compared_by_name(place: Path, tmp_path: Path) -> None:
    other = head(place, tmp_path / "c.zip", machine="other", environment={"OMP_NUM_THREADS": "7"})
    compared = compare_bundles(place / "a.zip", other, 0.01)
    shown = {one.what: one.b for one in compared.conditions}
    assert shown["machine"] == "other"
    assert shown["environment OMP_NUM_THREADS"] == "7"


def test_another_verdict_is_shown_with_its_statement(place: Path, tmp_path: Path) -> None:
    results = json.loads((place / "a" / "results.json").read_bytes())
    statement = results["exhibits"][0]["statements"][0]
    before = statement["verdict"]
    statement["verdict"] = "refuted" if before != "refuted" else "confirmed"
    data = json.dumps(results).encode()
    with zipfile.ZipFile(place / "a.zip") as archive:
        files = json.loads(archive.read(BUNDLE))["files"]
    files["results.json"] = hashlib.sha256(data).hexdigest()
    first = head(place, tmp_path / "c.zip", files=files)
    with zipfile.ZipFile(first) as old, zipfile.ZipFile(tmp_path / "d.zip", "w") as new:
        for item in old.infolist():
            new.writestr(item.filename, data if item.filename == "results.json" else old.read(item))
    (verdict,) = compare_bundles(place / "a.zip", tmp_path / "d.zip", 0.01).verdicts
    assert (verdict.a, verdict.b, verdict.text) == (before, statement["verdict"], statement["text"])


def test_a_bundle_of_another_release_is_refused_with_both_releases(place: Path, tmp_path: Path) -> None:
    other = head(place, tmp_path / "c.zip", elbowroom="9.8.7")
    with pytest.raises(UsageError) as error:
        compare_bundles(place / "a.zip", other, 0.01)
    assert (error.value.field, error.value.value) == ("bundle", str(other))
    assert "elbowroom 9.8.7" in error.value.message
    assert __version__ in error.value.message
    assert "9.8.7" in error.value.hint


def test_a_changed_file_is_refused_by_its_name(place: Path, tmp_path: Path) -> None:
    other = changed(
        place, tmp_path / "c.zip", lambda name, data: data + b" " if name == "study.json" else data
    )
    with pytest.raises(UsageError, match=r"another file 'study\.json' than"):
        unpack(other, tmp_path / "out")


def test_a_file_outside_of_the_folder_is_refused(place: Path, tmp_path: Path) -> None:
    other = head(place, tmp_path / "c.zip", files={"../outside": "0"})
    with pytest.raises(UsageError, match="outside of its folder"):
        unpack(other, tmp_path / "out")
    assert not (tmp_path / "outside").exists()


def test_bundles_of_two_studies_are_not_compared(place: Path) -> None:
    with pytest.raises(UsageError, match="is of the study koop2009"):
        compare_bundles(place / "a.zip", place / "slides.zip", 0.01)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 damaged", b"text"], ids=["empty", "damaged", "text"])
def test_what_is_no_bundle_is_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(data)
    with pytest.raises(UsageError, match="is not a bundle"):
        unpack(tmp_path / "x.zip", tmp_path / "out")


def test_a_bundle_is_only_compared_with_a_bundle(
    place: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    assert cli.run(["compare", "a.zip", "a", "--json"]) == 2
    assert "two by two" in json.loads(capfd.readouterr().out)["error"]["message"]
