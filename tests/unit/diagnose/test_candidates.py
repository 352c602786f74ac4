"""Launch lines that are tried, by cause."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from elbowroom.diagnose.candidates import LineSituation, candidates, situation_of
from elbowroom.launch.launch_options import read_line
from elbowroom.launch.mpi import Mpi
from launch_lines import MPICH, OPENMPI, machine

OF_OPENMPI = {
    "mpi_yield_when_idle": "0", "btl_vader_eager_limit": "4096", "btl_vader_max_send_size": "32768",
    "btl_vader_segment_size": "4194304", "btl_vader_single_copy_mechanism": "1",
}  # fmt: skip
OF_MPICH = {"MPIR_CVAR_ASYNC_PROGRESS": "0", "MPIR_CVAR_POLLS_BEFORE_YIELD": "1000"}


def situation(
    text: str, mpi: Mpi | None, settings: Mapping[str, str], env: Mapping[str, str] | None = None
) -> LineSituation:
    return situation_of(read_line(text.split(), mpi), machine(), settings=settings, env=env or {})


def typed(text: str, mpi: Mpi | None, settings: Mapping[str, str], *causes: str) -> list[str]:
    return [one.typed for one in candidates(situation(text, mpi, settings), causes)]


def test_ranks_on_one_core_get_cores_of_their_own() -> None:
    assert typed("taskset -c 0 mpirun -n 2 ./app", OPENMPI, OF_OPENMPI, "shared-core")[0] == (
        "mpirun -n 2 --bind-to core --map-by core ./app"
    )
    assert typed("mpiexec -n 2 -bind-to user:0,0 ./app", MPICH, OF_MPICH, "shared-core")[0] == (
        "mpiexec -n 2 -bind-to core ./app"
    )
    assert typed("srun -n 2 --cpu-bind=map_cpu:0,0 ./app", None, {}, "shared-core")[0] == (
        "srun -n 2 --cpu-bind=cores --distribution=block:block ./app"
    )
    assert typed("flux run -n 2 -o cpu-affinity=map:0 ./app", None, {}, "shared-core")[0] == (
        "flux run -n 2 -o cpu-affinity=per-task ./app"
    )


def test_threads_of_a_rank_get_cores_of_their_own() -> None:
    text = "env OMP_NUM_THREADS=2 mpirun -n 2 --bind-to core ./app"
    first = typed(text, OPENMPI, OF_OPENMPI, "placement")[0]
    assert first == (
        "env OMP_NUM_THREADS=2 mpirun -n 2 --bind-to core --map-by slot:PE=2 -x OMP_PLACES=cores "
        "-x OMP_PROC_BIND=close ./app"
    )


def test_more_ranks_than_cores_give_up_their_core_while_they_wait() -> None:
    lines = typed("mpirun -n 8 --mca mpi_yield_when_idle 0 ./app", OPENMPI, OF_OPENMPI, "shared-core")
    assert "mpirun -n 8 --mca mpi_yield_when_idle 1 ./app" in lines
    assert not any("--bind-to core" in one for one in lines)


def test_progress_is_made_by_the_thread_that_the_library_has() -> None:
    assert typed("mpiexec -n 2 ./app", MPICH, OF_MPICH, "no-progress")[0] == (
        "mpiexec -n 2 -genv MPICH_ASYNC_PROGRESS 1 ./app"
    )
    assert not any(
        "PROGRESS" in one for one in typed("mpirun -n 2 ./app", OPENMPI, OF_OPENMPI, "no-progress")
    )


def test_an_eager_limit_grows_with_what_it_needs() -> None:
    given = situation("mpirun -n 2 ./app", OPENMPI, OF_OPENMPI)._replace(message_bytes=100_000)
    eager = candidates(given, ["protocol"])[0]
    assert "--mca btl_vader_eager_limit 131072" in eager.typed
    assert "--mca btl_vader_segment_size 8388608" in eager.typed


def test_a_setting_that_the_library_does_not_have_is_not_tried() -> None:
    assert typed("mpirun -n 2 ./app", OPENMPI, {}, "protocol") == typed("mpirun -n 2 ./app", OPENMPI, {})


def test_a_transport_of_the_user_is_left_to_the_library() -> None:
    given = situation("mpirun -n 2 --mca btl tcp,self ./app", OPENMPI, OF_OPENMPI, {"UCX_TLS": "tcp"})
    assert candidates(given, ["transport"])[0].typed == "env -u UCX_TLS mpirun -n 2 ./app"


def test_fewer_threads_change_results_and_need_leave() -> None:
    given = situation("mpirun -n 2 -x OMP_NUM_THREADS=8 ./app", OPENMPI, OF_OPENMPI)
    assert not any(one.changes_results for one in candidates(given))
    changing = [one for one in candidates(given, may_change_results=True) if one.changes_results]
    assert [one.typed for one in changing] == ["mpirun -n 2 -x OMP_NUM_THREADS=2 ./app"]


@pytest.mark.parametrize("cause", ["late-rank", "computation"])
def test_nothing_is_specific_to_causes_that_a_line_cannot_treat(cause: str) -> None:
    given = situation("mpirun -n 4 ./app", OPENMPI, OF_OPENMPI)
    assert {one.cause for one in candidates(given, [cause])} <= {"shared-core", "placement"}
