"""`elbowroom import` of the logs of benchmarks."""

import json

import pytest

from elbowroom import cli
from elbowroom.logs.reader import IMPORTERS


@pytest.fixture
def logs(tmp_path, monkeypatch):
    """A file for each importer, in the current folder."""
    monkeypatch.chdir(tmp_path)
    for importer in IMPORTERS.all():
        (tmp_path / f"{importer.name}.log").write_text(importer.sample)
    return [f"{importer.name}.log" for importer in IMPORTERS.all()]


def document(capfd, *words):
    assert cli.run([*words, "--json"]) == 0
    return json.loads(capfd.readouterr().out)


def test_all_logs_become_one_folder(logs, capfd):
    shown = document(capfd, "import", *logs, "-o", "run")
    assert shown["imported"]["tables"] == len(logs)
    assert shown["imported"]["rows"] == sum(len(table["rows"]) for table in shown["tables"])
    assert (shown["points"], shown["verdict"], shown["machine"]) == (None, None, None)
    assert document(capfd, "show", "run") == shown


def test_the_document_of_curves_names_their_format(tmp_path, capfd):
    (tmp_path / "c.csv").write_text(
        "# name: henri\n# cores_first_socket: 18\n# numa_per_socket: 1\n"
        "comp_node,comm_node,n,comp_alone,comm_alone,comp_together,comm_together\n"
        "0,0,1,5630.2,10871.0,5630.0,10865.1\n"
    )
    shown = document(capfd, "import", str(tmp_path / "c.csv"), "-o", str(tmp_path / "run"))
    assert shown["imported"] == {"format": "curves", "tables": 1, "rows": 1}
    assert len(shown["points"]) == 1


def test_the_tables_are_printed_with_their_ranges(logs, capfd):
    assert cli.run(["import", "osu.log", "stream.log", "-o", "run"]) == 0
    first = capfd.readouterr().out
    assert "2 tables of osu, stream with 4 rows." in first
    assert "rate 15 000 to 16 000 MB/s" in " ".join(first.split())
    assert cli.run(["show", "run"]) == 0
    assert set(capfd.readouterr().out.splitlines()) <= set(first.splitlines())


def test_rows_of_an_unknown_table_are_named(logs, capfd):
    with open("osu.log", "a") as file:
        file.write("\nmine\n1 2.5\n2 3.5\n")
    shown = document(capfd, "import", "osu.log", "-o", "run")
    assert shown["notes"] == [
        {"what": "osu.log", "reason": "lines 8 to 9: 2 rows of an unknown table, not imported"}
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["import", "-o", "run"], "file: is missing"),
        (["import", "osu.log", "other.log", "-o", "run"], "is not the log of a known benchmark"),
        (["import", "other.log", "-o", "run"], "is not the log of a known benchmark"),
        (["import", "cut.log", "-o", "run"], "cut.log line 3: no values follow the heading"),
        (["import", "osu.log", "--kernel", "triad", "-o", "run"], "is only valid with curves"),
        (["fit", "kept"], "holds tables of logs, no curves"),
        (["show", "kept", "--tails"], "is not valid for tables of logs"),
    ],
)
def test_wrong_requests_say_what_is_wrong_and_write_nothing(logs, tmp_path, capfd, words, message):
    (tmp_path / "other.log").write_text("nothing\n")
    (tmp_path / "cut.log").write_text("".join((tmp_path / "osu.log").read_text().splitlines(True)[:3]))
    assert cli.run(["import", "osu.log", "-o", "kept"]) == 0
    capfd.readouterr()
    assert cli.run(words) == 2
    assert message in " ".join(capfd.readouterr().err.split())
    assert not (tmp_path / "run").exists()
