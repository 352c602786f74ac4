"""Profiles of mpiP, TALP and Caliper: what they say, what they do not say, and what is wrong with a file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from elbowroom.diagnose.account import PARTS
from elbowroom.diagnose.foreign import read_foreign
from elbowroom.diagnose.foreign.account import foreign_account, foreign_causes, foreign_pop
from elbowroom.diagnose.foreign.profile import ForeignProfile
from elbowroom.errors import UsageError

DASHES = "-" * 75


def section(title: str, *rows: str) -> str:
    return "\n".join([DASHES, f"@--- {title} ".ljust(75, "-"), DASHES, *rows, ""])


HEADER = "@ mpiP\n@ Command : ./app\n@ Version                  : 3.5.0\n@ MPI Task Assignment : 0 node01\n"
TIMES = section(
    "MPI Time (seconds)",
    "Task    AppTime    MPITime     MPI%",
    "   0         10          1    10.00",
    "   1         10          6    60.00",
    "   *         20          7    35.00",
)
SITES = section(
    "Callsites: 3",
    " ID Lev File/Address        Line Parent_Funct             MPI_Call",
    "  1   0 halo.c                88 exchange                 Waitall",
    "  1   1 main.c                12 main",
    "  2   0 0x40a1b2                 [unknown]                Comm_dup",
    "  3   0 io.c                   7 dump                     File_write",
)
ALL_TIMES = section(
    "Callsite Time statistics (all, milliseconds): 3",
    "Name              Site Rank  Count      Max     Mean      Min   App%   MPI%",
    "Waitall              1    0    100       10       10       10  10.00 100.00",
    "Waitall              1    1    100       50       50       50  50.00  83.33",
    "Waitall              1    *    200       50       30       10  30.00  85.71",
    "",
    "Comm_dup             2    *      1      400      400      400   2.00   5.71",
    "",
    "File_write           3    *      2      300      300      300   3.00   8.57",
)
END = section("End of Report")
MPIP = HEADER + TIMES + SITES + ALL_TIMES + END

TALP = {
    "dlbVersion": "3.5",
    "timestamp": "2026-01-01T00:00:00",
    "resources": {"numCpus": 4, "numNodes": 1, "numMpiRanks": 4},
    "popMetrics": {
        "solver": {"elapsedTime": 5_000_000_000, "usefulTime": 12_000_000_000, "mpiTime": 8_000_000_000},
        "Global": {
            "numCpus": 4, "numMpiRanks": 4, "elapsedTime": 10_000_000_000, "usefulTime": 30_000_000_000,
            "mpiTime": 10_000_000_000, "ompLoadImbalanceTime": 0, "ompSchedulingTime": 0,
            "ompSerializationTime": 0,
            "parallelEfficiency": 0.75, "mpiParallelEfficiency": 0.75, "mpiCommunicationEfficiency": 0.94,
            "mpiLoadBalance": 0.80, "mpiLoadBalanceIn": 0.80, "mpiLoadBalanceOut": 1.0,
        },
    },
}  # fmt: skip

CALIPER = """\
__rec=node,id=20,attr=10,data=268,parent=3
__rec=node,id=21,attr=8,data=region,parent=20
__rec=node,id=22,attr=8,data=mpi.function,parent=20
__rec=node,id=23,attr=10,data=85,parent=5
__rec=node,id=24,attr=8,data=sum#time.duration,parent=23
__rec=node,id=25,attr=10,data=13,parent=1
__rec=node,id=26,attr=8,data=mpi.rank,parent=25
__rec=node,id=30,attr=21,data=main
__rec=node,id=31,attr=22,data=MPI_Allreduce,parent=30
__rec=ctx,ref=30,attr=24=26,data=6.0=0
__rec=ctx,ref=31,attr=24=26,data=2.0=0
__rec=ctx,ref=30,attr=24=26,data=7.5=1
__rec=ctx,ref=31,attr=24=26,data=0.5=1
__rec=globals,ref=30
"""


def read(folder: Path, text: str | Mapping[str, object], name: str = "profile") -> ForeignProfile:
    path = folder / name
    path.write_text(text if isinstance(text, str) else json.dumps(text, indent=2))
    return read_foreign(path)


def account(profile: ForeignProfile) -> dict[str, float | None]:
    return foreign_account(profile, PARTS)


def test_an_mpip_report_gives_computation_library_and_io_and_leaves_the_rest_unexplained(
    tmp_path: Path,
) -> None:
    found = account(read(tmp_path, MPIP))
    given = {part: value for part, value in found.items() if value is not None}
    assert given == pytest.approx({"compute": 0.65, "library": 0.02, "io": 0.03, "not_explained": 0.30})


def test_the_call_sites_of_an_mpip_report_come_longest_first_with_their_places(tmp_path: Path) -> None:
    first, *_, last = read(tmp_path, MPIP).calls
    assert (first.function, first.caller, first.file, first.line) == ("MPI_Waitall", "exchange", "halo.c", 88)
    assert first.seconds == pytest.approx(6.0)
    assert (last.function, last.caller, last.line) == ("MPI_Comm_dup", "", None)


def test_a_rank_that_computes_longer_than_the_mean_is_the_cause(tmp_path: Path) -> None:
    profile = read(tmp_path, MPIP)
    (cause,) = foreign_causes(profile, account(profile))
    assert cause.cause == "late-rank"
    assert cause.share == pytest.approx(0.25)
    assert "Rank 0" in cause.evidence


def test_the_factors_of_a_file_with_times_of_all_ranks_are_those_of_talp(tmp_path: Path) -> None:
    pop = foreign_pop(read(tmp_path, MPIP))
    assert pop.parallel_efficiency == pytest.approx(0.65)
    assert pop.load_balance == pytest.approx(6.5 / 9)
    assert pop.communication == pytest.approx(0.9)


def test_a_concise_report_says_that_call_sites_are_missing(tmp_path: Path) -> None:
    aggregate = section("Aggregate Time (top twenty, descending, milliseconds)",
                        "Call                 Site       Time    App%    MPI%     COV",
                        "Waitall                 1       6000   30.00   85.71    0.50")  # fmt: skip
    profile = read(tmp_path, HEADER + TIMES + aggregate + END)
    assert profile.calls[0].seconds == pytest.approx(6.0)
    assert account(profile)["library"] is None
    assert "twenty" in profile.notes[0]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (HEADER + TIMES, 11, "no end"),
        (MPIP.replace("   1         10          6", "   1         10        x.6"), 10, "'x.6' as MPITime"),
        (
            MPIP.replace("   1         10          6", "   0         10          6"),
            10,
            "rank 0 a second time",
        ),
        (MPIP.replace("   1         10          6", "   1         10         16"), 10, "more MPITime"),
        (MPIP + MPIP, 34, "second report"),
        (HEADER + SITES + END, 1, "without the section 'MPI Time'"),
        (MPIP.replace("Comm_dup             2    *      1      400      400", "Comm_dup 2"), 28, "columns"),
        (MPIP + '{"popMetrics": {}}\n', 34, "behind the end"),
        (HEADER + "__rec=ctx,ref=1\n" + MPIP, 5, "not a line of a header"),
    ],
    ids=("cut", "number", "rank", "times", "two", "section", "columns", "json behind", "caliper inside"),
)
def test_a_damaged_or_mixed_mpip_report_is_refused_with_the_line(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    with pytest.raises(UsageError) as error:
        read(tmp_path, text)
    assert f"line {line} " in error.value.message
    assert words in error.value.message
    assert "mpiP" in error.value.hint


def test_talp_gives_the_factors_and_computation_of_the_whole_program(tmp_path: Path) -> None:
    profile = read(tmp_path, TALP)
    given = {part: value for part, value in account(profile).items() if value is not None}
    assert given == pytest.approx({"compute": 0.75, "not_explained": 0.25})
    assert (profile.region, profile.seconds, profile.ranks) == ("Global", 10.0, 4)
    assert (profile.pop.parallel_efficiency, profile.pop.load_balance) == (0.75, 0.80)
    assert (profile.pop.serialisation, profile.pop.transfer) == (None, None)


def test_the_load_balance_of_talp_is_evidence_of_late_ranks(tmp_path: Path) -> None:
    profile = read(tmp_path, TALP)
    (cause,) = foreign_causes(profile, account(profile))
    assert cause.cause == "late-rank"
    assert cause.share == pytest.approx(0.75 * 0.25)


def test_waiting_threads_are_neither_computation_nor_mpi(tmp_path: Path) -> None:
    whole = {**TALP["popMetrics"]["Global"], "ompSerializationTime": 10_000_000_000}  # type: ignore[index]
    profile = read(tmp_path, {**TALP, "popMetrics": {"Global": whole}})
    assert (profile.useful, profile.mpi) == pytest.approx((0.6, 0.2))
    assert "threads of OpenMP" in profile.notes[-1]


def test_times_of_processes_name_the_late_rank(tmp_path: Path) -> None:
    processes = [
        {
            "rank": rank,
            "elapsedTime": 10_000_000_000,
            "usefulTime": useful,
            "mpiTime": 10_000_000_000 - useful,
        }
        for rank, useful in enumerate((7_000_000_000, 7_000_000_000, 9_000_000_000, 7_000_000_000))
    ]
    profile = read(tmp_path, {**TALP, "Process": {"Global": processes}})
    assert foreign_causes(profile, account(profile))[0].evidence.startswith("Rank 2 ")


@pytest.mark.parametrize("form", ["list", "Application"])
def test_older_and_newer_releases_of_talp_are_read(tmp_path: Path, form: str) -> None:
    whole = {"name": "MPI Execution", "elapsedTime": 10**10, "averageIPC": 1.2, "parallelEfficiency": 0.5,
             "communicationEfficiency": 0.9, "loadBalance": 0.56, "lbIn": 1.0, "lbOut": 0.56}  # fmt: skip
    data = {"popMetrics": [whole]} if form == "list" else {"Application": {"Application": whole}}
    profile = read(tmp_path, data)
    assert (profile.pop.parallel_efficiency, profile.pop.load_balance) == (0.5, 0.56)
    assert account(profile)["compute"] == 0.5


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (json.dumps(TALP, indent=2)[:-40], 0, "is not JSON"),
        (json.dumps(TALP, indent=2).replace("30000000000", '"many"'), 19, "usefulTime"),
        (json.dumps(TALP, indent=2).replace("0.75", "7.5"), 24, "at most 1"),
    ],
    ids=("cut", "number", "efficiency"),
)
def test_damaged_json_of_talp_is_refused_with_the_line(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    with pytest.raises(UsageError) as error:
        read(tmp_path, text)
    assert words in error.value.message
    if line:
        assert f"line {line} " in error.value.message
    assert "DLB" in error.value.hint


def test_caliper_gives_computation_and_mpi_functions_by_rank(tmp_path: Path) -> None:
    profile = read(tmp_path, CALIPER)
    assert (profile.seconds, profile.ranks) == pytest.approx((8.0, 2))
    given = {part: value for part, value in account(profile).items() if value is not None}
    assert given == pytest.approx({"compute": 13.5 / 16, "not_explained": 2.5 / 16})
    assert profile.calls[0].function == "MPI_Allreduce"
    assert foreign_causes(profile, account(profile))[0].evidence.startswith("Rank 1 ")


def test_times_with_those_of_inner_regions_are_counted_once(tmp_path: Path) -> None:
    text = CALIPER.replace("sum#time.duration", "inclusive#sum#time.duration")
    text = text.replace("data=6.0=0", "data=8.0=0").replace("data=7.5=1", "data=8.0=1")
    profile = read(tmp_path, text)
    assert (profile.seconds, profile.mpi) == pytest.approx((8.0, 2.5 / 16))


def test_without_mpi_functions_nothing_of_a_caliper_file_is_explained(tmp_path: Path) -> None:
    text = "".join(line for line in CALIPER.splitlines(keepends=True) if "ref=31" not in line)
    profile = read(tmp_path, text)
    assert account(profile)["compute"] is None
    assert account(profile)["not_explained"] == 1.0
    assert foreign_causes(profile, account(profile)) == ()
    assert "mpi service" in profile.notes[-1]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (CALIPER.replace("data=2.0=0", "data=2.0"), 11, "as many values"),
        (CALIPER.replace("ref=30,attr", "ref=99,attr"), 10, "refers to 99"),
        (CALIPER[:-6], 14, "is cut off"),
        (CALIPER + "@ mpiP\n", 15, "does not begin with __rec"),
    ],
    ids=("values", "reference", "end", "mixed"),
)
def test_a_damaged_caliper_file_is_refused_with_the_line(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    with pytest.raises(UsageError) as error:
        read(tmp_path, text)
    assert f"line {line} " in error.value.message
    assert words in error.value.message
    assert "Caliper" in error.value.hint


@pytest.mark.parametrize("text", ["", "time,value\n1,2\n", '{"traceEvents": []}\n', "\x00\x01ELF"])
def test_a_file_of_no_known_format_names_the_tools_that_write_them(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError) as error:
        read(tmp_path, text)
    assert all(tool in error.value.hint for tool in ("mpiP", "DLB", "Caliper"))


def of_job(text: str, mark: str) -> str:
    """The output of a job that prints a file, each line behind a launcher's label."""
    lines = ["Starting at 12:00", "step 1: residual 0.5", *text.splitlines(), "", "job finished: 0"]
    return "".join(f"{mark}{line}\n" for line in lines)


@pytest.mark.parametrize("mark", ["", "[1,0]<stdout>: ", "0: ", "node01: "])
@pytest.mark.parametrize("text", [MPIP, json.dumps(TALP, indent=2), CALIPER], ids=["mpiP", "TALP", "Caliper"])
def test_a_file_in_the_output_of_a_job_is_read_as_by_itself(tmp_path: Path, text: str, mark: str) -> None:
    assert read(tmp_path, of_job(text, mark)) == read(tmp_path, text)


def test_an_error_of_a_file_in_the_output_of_a_job_has_the_line_of_the_output(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        read(tmp_path, of_job(CALIPER.replace("ref=30,attr", "ref=99,attr"), "0: "))
    assert "line 12 " in error.value.message


def test_causes_are_named_only_where_the_file_has_evidence(tmp_path: Path) -> None:
    text = CALIPER.replace("data=7.5=1", "data=6.0=1").replace("data=0.5=1", "data=2.0=1")
    profile = read(tmp_path, text)
    assert profile.mpi == pytest.approx(0.25)
    assert foreign_causes(profile, account(profile)) == ()


PUBLIC = Path(os.environ.get("ELBOWROOM_PUBLIC_FILES", "/nonexistent"))


@pytest.mark.skipif(not PUBLIC.is_dir(), reason="ELBOWROOM_PUBLIC_FILES names no folder of public files")
@pytest.mark.parametrize("path", sorted(PUBLIC.glob("caliper/*.cali")), ids=lambda path: path.name)
def test_public_files_of_caliper_are_read(path: Path) -> None:
    assert sum(value or 0.0 for value in account(read_foreign(path)).values()) == pytest.approx(1.0)
