"""The kernels' table in Python: sound in itself, and the same as the probe's."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from elbowroom.errors import UsageError
from elbowroom.plan import kernels
from elbowroom.plan.kernels import KERNELS, arithmetic_intensity, find, names

PROBE = os.environ.get("ELBOWROOM_PROBE", "")


def test_plain_stores_cost_a_write_allocate_on_the_bus() -> None:
    for kernel in KERNELS.values():
        allocated = 0 if kernel.non_temporal else kernel.bytes_written
        expected = kernel.algorithmic_bytes + allocated if kernel.moves_memory else 0
        assert kernel.bus_bytes == expected, kernel.name


def test_a_core_that_avoids_the_read_moves_the_bytes_of_the_algorithm() -> None:
    for kernel in KERNELS.values():
        assert kernel.moved() == kernel.bus_bytes, kernel.name
        assert kernel.moved(1.0) == (kernel.algorithmic_bytes if kernel.moves_memory else 0), kernel.name


def test_kernels_that_form_a_pair_differ_only_in_their_stores() -> None:
    assert {plain.name for plain, _ in kernels.STORE_PAIRS} == {"triad", "copy"}
    for plain, other in kernels.STORE_PAIRS:
        assert (plain.non_temporal, other.non_temporal) == (False, True)
        assert (plain.bytes_read, plain.bytes_written, plain.flops) == (
            other.bytes_read,
            other.bytes_written,
            other.flops,
        )


def test_the_arithmetic_intensity_of_triad_grows_with_the_cursor() -> None:
    assert arithmetic_intensity("triad") == pytest.approx(1 / 12)
    assert arithmetic_intensity("triad_cursor", 72) == pytest.approx(6)
    assert arithmetic_intensity("triad", 72) == pytest.approx(1 / 12)


def test_without_memory_or_flops_there_is_no_arithmetic_intensity() -> None:
    assert arithmetic_intensity("prime") is None
    assert arithmetic_intensity("fma") is None
    assert arithmetic_intensity("copy") is None
    assert arithmetic_intensity("none") is None


def test_workers_of_a_pool_use_more_than_registers_though_they_have_no_memory() -> None:
    pool = {name for name, kernel in KERNELS.items() if kernel.pool}
    assert pool == {"polling", "paused"}
    assert {name for name, kernel in KERNELS.items() if kernel.register_only} == {
        "prime",
        "fma",
        "fma128",
        "fma256",
        "fma512",
    }
    assert not any(KERNELS[name].moves_memory for name in pool)


def test_none_is_a_name_without_a_kernel() -> None:
    assert "none" in names()
    assert find("none") is None


def test_an_unknown_kernel_is_refused_with_what_is_close() -> None:
    with pytest.raises(UsageError, match="did you mean 'memset_nt'"):
        find("memsetnt")


@pytest.mark.skipif(not PROBE, reason="ELBOWROOM_PROBE does not name a probe")
def test_the_table_is_that_of_the_probe() -> None:
    printed = subprocess.run([PROBE, "kernels"], capture_output=True, check=True).stdout
    table = Path(kernels.__file__).with_name("kernels.json")
    assert json.loads(table.read_bytes()) == json.loads(printed), "run tools/kernel_table.py"
