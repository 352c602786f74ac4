"""curves.csv: what is read, what is written, what is refused and how."""

from __future__ import annotations

from pathlib import Path

import pytest

from elbowroom.errors import UsageError
from elbowroom.models.curves import Curves, Row, Shape, Situation
from elbowroom.store.curves import format_curves, parse_curves, read_curves, same

HEAD = "# name: henri\n# cores_first_socket: 18\n# numa_per_socket: 1\n"
COLUMNS = "comp_node,comm_node,n,comp_alone,comm_alone,comp_together,comm_together\n"
ROW = "0,1,4,17823.5,11459.6,17823.5,11400\n"
SOUND = HEAD + COLUMNS + ROW


def parsed(text: str) -> Curves:
    return parse_curves(text.encode(), "c.csv")


def refused(text: str | bytes) -> UsageError:
    with pytest.raises(UsageError) as caught:
        parse_curves(text if isinstance(text, bytes) else text.encode(), "c.csv")
    assert caught.value.hint
    return caught.value


def test_a_row_is_a_situation_with_four_bandwidths() -> None:
    found = parsed(SOUND)
    assert found.shape == Shape(name="henri", cores_first_socket=18, numa_per_socket=1)
    assert found.rows == (
        Row(
            situation=Situation(comp_node=0, comm_node=1, n=4),
            comp_alone=17823.5,
            comm_alone=11459.6,
            comp_together=17823.5,
            comm_together=11400.0,
            source="c.csv line 5",
        ),
    )
    assert (found.kernel, found.size) == ("memset_nt", 64_000_000)


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + SOUND,
        SOUND.replace("\n", "\r\n"),
        SOUND.replace("\n", "\r"),
        SOUND.removesuffix("\n"),
        "\n" + SOUND + "\n\n",
        "# measured in May: with the other kernel\n" + SOUND + "# kernel: none\n# sockets: many\n",
        COLUMNS + ROW + HEAD,
        SOUND.replace(",", " , "),
        SOUND.replace("17823.5", '"17823.5"'),
        SOUND.replace("17823.5", "1.78235e4"),
        HEAD + "n,comp_node,comm_node,comm_together,comp_together,comm_alone,comp_alone\n"
        "4,0,1,11400,17823.5,11459.6,17823.5\n",
    ],
    ids=["bom", "crlf", "cr", "no newline", "blank lines", "comments", "headers last", "blanks", "quotes",
         "exponent", "column order"],
)  # fmt: skip
def test_spellings_that_mean_the_same(text: str) -> None:
    assert same(parsed(text), parsed(SOUND))


def test_an_empty_cell_was_not_measured() -> None:
    assert parsed(HEAD + COLUMNS + "0,1,4,,11459.6,17823.5,\n").rows[0].streams == (
        None,
        11459.6,
        17823.5,
        None,
    )


def test_the_second_socket_has_a_column_of_its_own() -> None:
    text = HEAD + COLUMNS.replace("\n", ",n_other\n") + ROW.replace("\n", ",3\n")
    assert parsed(text).rows[0].situation == Situation(comp_node=0, comm_node=1, n=4, n_other=3)


def test_headers_of_our_own_say_what_the_three_do_not() -> None:
    extra = (
        "# elbowroom/sockets: 4\n# elbowroom/nic_node: 3\n# elbowroom/virtual: true\n"
        "# elbowroom/kernel: triad\n# elbowroom/size: 4MiB\n"
    )
    found = parsed(extra + SOUND)
    assert (found.shape.sockets, found.shape.nic_node, found.shape.virtual) == (4, 3, True)
    assert (found.kernel, found.size) == ("triad", 4 << 20)
    assert same(parsed(format_curves(found)), found)


def test_a_machine_of_one_socket_has_no_other_cores() -> None:
    one = "# elbowroom/sockets: 1\n" + HEAD + COLUMNS.replace("\n", ",n_other\n")
    assert refused(one + "0,0,4,1e4,1e4,1e4,1e4,2\n").field == "n_other"


LINE5 = "c.csv line 5: "


@pytest.mark.parametrize(
    ("row", "field", "message"),
    [
        ("0,1,,1e4,1e4,1e4,1e4", "n", "is missing"),
        ("0,1,1.5,1e4,1e4,1e4,1e4", "n", "is not a whole number"),
        ("0,1,-1,1e4,1e4,1e4,1e4", "n", "is not a whole number"),
        ("0,1,0,1e4,1e4,1e4,1e4", "n", "no core computes"),
        ("0,1,19,1e4,1e4,1e4,1e4", "n", "a socket has 18 cores"),
        ("0,2,4,1e4,1e4,1e4,1e4", "comm_node", "has the nodes 0 to 1"),
        ("7,0,4,1e4,1e4,1e4,1e4", "comp_node", "has the nodes 0 to 1"),
        ("x,0,4,1e4,1e4,1e4,1e4", "comp_node", "is not a whole number"),
        ("0,1,٣,1e4,1e4,1e4,1e4", "n", "is not a whole number"),
        ("0,1,4,nan,1e4,1e4,1e4", "comp_alone", "is not a number"),
        ("0,1,4,1e4,inf,1e4,1e4", "comm_alone", "is not a number"),
        ("0,1,4,1e4,1e999,1e4,1e4", "comm_alone", "is not a number"),
        ("0,1,4,1e4,1e4,1_000,1e4", "comp_together", "is not a number"),
        ("0,1,4,1e4,1e4,n/a,1e4", "comp_together", "is not a number"),
        ("0,1,4,1e4,1e4,1e4,-5", "comm_together", "is not positive"),
        ("0,1,4,0,1e4,1e4,1e4", "comp_alone", "is not positive"),
        ("0,1,4,,,,", "row", "no bandwidth is given"),
        ("0,1,4,1e4,1e4,1e4", "row", "6 cells where 7 columns"),
        ("0,1,4,17823,5,11459,6,17823,5,11400,0", "row", "decimal point"),
        ('0,1,4,"1e4,1e4,1e4,1e4', "line", "is not CSV"),
    ],
)
def test_a_wrong_cell_is_refused_with_line_field_and_mend(row: str, field: str, message: str) -> None:
    error = refused(HEAD + COLUMNS + row + "\n")
    assert error.field == field
    assert message in error.sentence()
    assert error.message.startswith(LINE5)


@pytest.mark.parametrize(
    ("text", "field", "message"),
    [
        ("", "curves", "there is nothing in it"),
        ("# a comment\n", "curves", "there is nothing in it"),
        (COLUMNS + ROW, "name", "this header is missing"),
        (SOUND.replace("# cores_first_socket: 18\n", ""), "cores_first_socket", "this header is missing"),
        (SOUND.replace("cores_first_socket", "core_first_socket"), "cores_first_socket", "line 2 says"),
        (SOUND.replace(": 18", ": many"), "cores_first_socket", "is not a whole number from 1"),
        (SOUND.replace(": 18", ": 0"), "cores_first_socket", "is not a whole number from 1"),
        (SOUND.replace(": 18", ": 400000"), "cores_first_socket", "more than any machine has"),
        (SOUND.replace("# name: henri", "# name:"), "name", "no readable value"),
        (HEAD + "# name: bora\n" + COLUMNS + ROW, "name", "is 'henri' on line 1"),
        ("# elbowroom/socket: 2\n" + SOUND, "header", "did you mean 'sockets'"),
        ("# elbowroom/nic_node: 2\n" + SOUND, "nic_node", "has the nodes 0 to 1"),
        ("# elbowroom/kernel: memset\n" + SOUND, "kernel", "no such kernel"),
        ("# elbowroom/unit: GB/s\n" + SOUND, "unit", "write MB/s"),
        (HEAD, "columns", "no line names the columns"),
        (HEAD + ROW, "columns", "no line names the columns"),
        (HEAD + COLUMNS, "rows", "no values follow"),
        (HEAD + COLUMNS.replace("comm_node", "comm_nodes") + ROW, "columns", "did you mean 'comm_node'"),
        (HEAD + COLUMNS.replace(",comm_node", "") + ROW, "columns", "this column is missing"),
        (HEAD + COLUMNS.replace("comm_alone", "comp_alone") + ROW, "columns", "appears twice"),
        (SOUND.replace(",", ";"), "columns", "not separated by commas"),
        (SOUND + ROW, "row", "the same run as line 5"),
    ],
)
def test_a_wrong_file_is_refused_with_field_and_mend(text: str, field: str, message: str) -> None:
    error = refused(text)
    assert error.field == field
    assert message in error.sentence()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x7fELF\x02\x01\x00\x00", "binary"),
        (SOUND.encode("utf-16"), "UTF-16"),
        (SOUND.replace("henri", "h\xe9nri").encode("latin-1"), "line 1 is not UTF-8"),
    ],
)
def test_what_is_no_text_is_refused(data: bytes, message: str) -> None:
    assert message in refused(data).sentence()


def scaled(factor: float) -> str:
    rows = [(4, 17823.5, 11459.6), (8, 35647.0, 11459.6)]
    lines = [
        f"0,1,{n},{comp * factor},{comm * factor},{comp * factor},{comm * factor}\n" for n, comp, comm in rows
    ]
    return HEAD + COLUMNS + "".join(lines)


@pytest.mark.parametrize(("factor", "unit"), [(1e-3, "GB/s"), (1e3, "kB/s"), (1e6, "kB/s or B/s")])
def test_values_in_another_unit_are_refused(factor: float, unit: str) -> None:
    error = refused(scaled(factor))
    assert f"look like {unit}" in error.message
    assert "elbowroom/unit: MB/s" in error.hint


def test_an_odd_scale_may_be_confirmed_and_stays_so() -> None:
    found = parsed("# elbowroom/unit: MB/s\n" + scaled(1e-3))
    assert same(parsed(format_curves(found)), found)


def test_a_network_in_gigabytes_beside_cores_in_megabytes_is_found() -> None:
    error = refused(HEAD + COLUMNS + "0,1,4,17823.5,11.4,17823.5,11.3\n")
    assert error.field == "comm_alone"


@pytest.mark.parametrize(("name", "message"), [("nothing.csv", "cannot be read"), (".", "is a folder")])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_curves(tmp_path / name)
