"""Imported tables in compare, report and fit: rows with the same key, differences that repetitions allow."""

import json
from pathlib import Path

import pytest

from elbowroom.errors import UsageError
from elbowroom.verbs.compare import CompareRuns
from elbowroom.verbs.fit import Fit
from elbowroom.verbs.import_files import ImportFiles
from elbowroom.verbs.report import WriteReport

LATENCY = """\
# OSU MPI Latency Test v7.3
# Size          Latency (us)
{rows}
"""


def imported(folder: Path, name: str, factors: list[float], sizes: tuple[int, ...] = (8, 1024)) -> str:
    logs = []
    for at, factor in enumerate(factors):
        rows = "\n".join(f"{size:<16}{(1 + size / 1000) * factor:.2f}" for size in sizes)
        logs.append(folder / f"{name}-{at}.log")
        logs[-1].write_text(LATENCY.format(rows=rows))
    out = folder / name
    ImportFiles(files=logs, out=out).do()
    return str(out)


def test_one_log_each_gives_differences_and_no_verdict(tmp_path):
    a, b = imported(tmp_path, "a", [1.0]), imported(tmp_path, "b", [1.5])
    request = CompareRuns(a=a, others=(b,))
    found = request.do()
    assert [(one.row, one.unit, one.low, one.better) for one in found.changes] == [
        ({"size": 8}, "us", None, "same"), ({"size": 1024}, "us", None, "same"),
    ]  # fmt: skip
    assert found.changes[1].change == pytest.approx(0.5, abs=0.01)
    assert found.sentence.startswith("No verdict: no value is there 3 times on both sides")
    request.print(found)


def test_repetitions_give_an_interval_and_less_of_a_latency_is_better(tmp_path):
    a = imported(tmp_path, "a", [1.0, 1.02, 0.98, 1.0])
    b = imported(tmp_path, "b", [1.5, 1.52, 1.48, 1.5])
    found = CompareRuns(a=a, others=(b,), fail_above=0.2)
    result = found.do()
    large = result.changes[1]
    assert large.low < 0.5 < large.high
    assert (large.better, large.values_a, result.significant) == ("a", 4, 2)
    assert found.exit_code(result) == 1


def test_rows_that_one_side_lacks_are_counted(tmp_path):
    a, b = imported(tmp_path, "a", [1.0], (8, 64)), imported(tmp_path, "b", [1.0], (64, 128, 256))
    found = CompareRuns(a=a, others=(b,)).do()
    assert (len(found.changes), found.only_a, found.only_b) == (1, 1, 2)


def test_what_cannot_be_compared_is_refused(tmp_path):
    a, b = imported(tmp_path, "a", [1.0], (8, 64)), imported(tmp_path, "b", [1.0], (128, 256))
    with pytest.raises(UsageError, match="has no value in common"):
        CompareRuns(a=a, others=(b,)).do()
    with pytest.raises(UsageError, match="only compared with one other folder of tables"):
        CompareRuns(a=a, others=(str(tmp_path / "run"),)).do()


def test_the_report_has_each_value_and_the_line_that_it_comes_from(tmp_path):
    a = imported(tmp_path, "a", [1.0])
    (page,) = WriteReport(runs=(a,)).do()
    text = page.read_text()
    assert page == Path(a) / "report.html"
    assert "size 1024" in text
    assert "2.02 us" in text
    assert "a-0.log line 4" in text


def test_a_fit_says_what_is_missing(tmp_path):
    with pytest.raises(UsageError, match="holds tables of logs, no curves"):
        Fit(run=imported(tmp_path, "a", [1.0])).do()


def test_the_document_of_an_import_says_what_was_imported(tmp_path):
    log = tmp_path / "osu.log"
    log.write_text(LATENCY.format(rows="8    1.05\n16   1.07"))
    request = ImportFiles(files=[log], out=tmp_path / "run")
    document = json.loads(json.dumps(request.document(request.do())))
    assert document["imported"] == {"format": "osu", "tables": 1, "rows": 2}
    assert {document[name] for name in ("points", "verdict", "findings", "machine", "plan")} == {None}
