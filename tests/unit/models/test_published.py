from __future__ import annotations

import msgspec
import pytest

from elbowroom.errors import UsageError
from elbowroom.models import published

MACHINES = ("billy", "bora", "dahu", "diablo", "grvingt", "henri", "henrisubnuma", "occigen", "pyxis")


def test_the_nine_machines_of_the_thesis_are_there() -> None:
    assert published.names() == MACHINES


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_s_own_figures_agree(name: str) -> None:
    found = published.load(name)
    assert found.name == name
    assert found.cores == found.sockets * found.cores_first_socket
    assert 0 <= found.nic_node < found.shape.nodes
    for stream in (found.errors.comm, found.errors.comp):
        low, high = sorted((stream.samples, stream.non_samples))
        assert low <= stream.all <= high
    assert found.errors.average == pytest.approx(
        (found.errors.comm.all + found.errors.comp.all) / 2, abs=0.0101
    )


def test_the_averages_of_table_6_1_follow_from_the_machines() -> None:
    rows = [published.load(name).errors for name in MACHINES]
    assert sum(row.average for row in rows) / 9 == pytest.approx(3.24, abs=0.006)
    assert sum(row.comm.non_samples for row in rows) / 9 == pytest.approx(5.40, abs=0.006)
    assert sum(row.comp.samples for row in rows) / 9 == pytest.approx(1.73, abs=0.006)


def test_the_misprint_is_kept_as_printed_and_used_corrected() -> None:
    found = published.load("henrisubnuma")
    assert found.remote.n_par_max == 11
    assert found.used("remote").n_par_max == 2
    assert found.model.remote == found.used("remote")
    assert "859.1" in found.corrections[0].reason


def test_without_its_correction_the_misprint_is_refused() -> None:
    printed = published.load("henrisubnuma").remote
    with pytest.raises(UsageError, match=r"henrisubnuma\.remote\.n_par_max 11: is above n_seq_max = 4"):
        published.check(printed, "henrisubnuma.remote")


def test_a_loss_that_is_not_the_slope_between_the_peaks_is_refused() -> None:
    good = published.load("henri").used("remote")
    published.check(good, "henri.remote")
    with pytest.raises(UsageError, match=r"henri\.remote\.delta_l 17\.58"):
        published.check(msgspec.structs.replace(good, delta_l=17.58), "henri.remote")


def test_another_name_is_told_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'henri'"):
        published.load("henry")


def test_a_file_with_a_key_too_many_is_refused() -> None:
    text = (published.FOLDER / "bora.toml").read_text(encoding="utf-8")
    with pytest.raises(UsageError, match="colour"):
        published.decode(f'colour = "blue"\n{text}')
