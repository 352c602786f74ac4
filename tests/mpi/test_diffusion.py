"""apps/diffusion, driven through its pipes: ranks of a real MPI on this machine. No test asserts a time."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from elbowroom.errors import ElbowroomError, UsageError
from elbowroom.launch import build
from elbowroom.store.meshes import check_mesh, write_mesh
from made_meshes import box

Record = dict[str, Any]

CORES = sorted(os.sched_getaffinity(0))
PATIENCE = 120  # seconds that a busy machine may take for anything

pytestmark = pytest.mark.skipif(len(CORES) < 2, reason="needs two cores: one computes, one communicates")


@pytest.fixture(scope="module")
def diffusion() -> Path:
    try:
        return build.application("diffusion")
    except ElbowroomError as error:
        pytest.skip(error.sentence())


def config(**changes: Any) -> Record:
    """A small mesh; on two cores the computing threads of all ranks take turns on one of them."""
    places = ("comp_cores", "comm_cores", "placements", "scheduling")
    program = {"name": "diffusion", "resolution": 12}
    program |= {key: value for key, value in changes.items() if key not in places}
    return {
        "program": program,
        "comp_cores": [CORES[1]],
        "comm_cores": [CORES[0]],
        "scheduling": True,
    } | {key: value for key, value in changes.items() if key in places}


def ask(variant: str, steps: int, **changes: Any) -> Record:
    return {"op": "measure", "point": variant, "repetition": 0, "variant": variant, "steps": steps} | changes


def run(
    program: Path, folder: Path, ranks: int, settings: Record, *requests: Record, command: str = "measure"
) -> tuple[int, list[Record]]:
    """Exit code and lines of a whole conversation."""
    path = folder / "config.json"
    path.write_text(json.dumps(settings))
    words = [os.environ["ELBOWROOM_MPIRUN"], "--bind-to", "none", "--oversubscribe", "-n", str(ranks)]
    environment = {
        **os.environ,
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_smsc": "^cma,xpmem,knem",
        "TMPDIR": "/tmp",
    }
    done = subprocess.run(
        [*words, str(program), *command.split(), "--config", str(path)],
        input="".join(json.dumps(request) + "\n" for request in (*requests, {"op": "quit"})),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=environment,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


VARIANTS = ("overlap", "apart", "none", "communication")


def test_overlap_and_apart_give_the_same_field_bit_by_bit_and_conserve_it(
    diffusion: Path, tmp_path: Path
) -> None:
    requests = [ask(name, 4, warmup=3) for name in (*VARIANTS, "triad", "overlap")]
    code, (hello, *answers) = run(diffusion, tmp_path, 3, config(), *requests)
    assert code == 0
    assert [answer["point"] for answer in answers] == [request["point"] for request in requests]
    assert all(answer["status"] == "ok" and answer["validated"] for answer in answers)
    overlap, apart, none, _, _, again = (answer["checksum"] for answer in answers)
    assert overlap == apart == again
    assert none != overlap
    assert all("scheduling" in answer["flags"] for answer in answers)
    assert sum(part["cells"] for part in hello["parts"]) == hello["cells"] == 6 * 12**3
    assert all(part["bound"] for part in hello["parts"])


def test_how_many_ranks_there_are_changes_no_bit_and_every_part_has_times(
    diffusion: Path, tmp_path: Path
) -> None:
    sums = set()
    for ranks in (1, 2):
        code, (_, answer) = run(diffusion, tmp_path, ranks, config(kappa=[1, 0.25]), ask("overlap", 5))
        assert code == 0
        assert answer["validated"]
        sums.add(answer["checksum"])
        [phase] = answer["phases"]
        times = {side: phase[side]["batches"] for side in ("total", "separator", "comp", "comm")}
        for steps in times.values():
            assert len(steps) == 5
            assert all(microseconds > 0 for microseconds in steps)
        assert answer["facts"]["cells"] == 6 * 12**3
        assert answer["facts"]["messages"] == ranks - 1
        whole = zip(times["total"], times["comp"], times["comm"], strict=True)
        # Each is the largest of all ranks, so that the whole is at least any of its parts.
        assert all(step >= max(interior, exchange) for step, interior, exchange in whole)
    assert len(sums) == 1


def test_a_solution_is_second_order_on_two_ranks(diffusion: Path, tmp_path: Path) -> None:
    errors = []
    for resolution in (4, 8):
        settings = config(resolution=resolution)
        code, (answer,) = run(diffusion, tmp_path, 2, settings, command="solve --time 0.02")
        assert code == 0
        assert answer["flags"].count("validation_failed") == 0
        errors.append(answer["error_l2"])
    assert errors[0] / errors[1] > 2**1.9


def test_what_cannot_be_asked_is_answered_and_the_conversation_goes_on(
    diffusion: Path, tmp_path: Path
) -> None:
    bad = [ask("both", 1), ask("overlap", 1, comm_threads=2), ask("none", 0), {"variant": "none"}]
    code, (_, *answers) = run(diffusion, tmp_path, 2, config(), *bad, ask("none", 1))
    assert code == 0
    assert [answer["field"] for answer in answers[:-1]] == ["variant", "comm_threads", "steps", "op"]
    assert [answer["point"] for answer in answers] == ["both", "overlap", "none", "", "none"]
    assert answers[-1]["status"] == "ok"


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"resolution": 1, "partitioner": "slabs"}, "parts", "more ranks than the 6 cells"),
        ({"comp_cores": [CORES[0], CORES[0]]}, "comp_cores", "is used twice"),
        ({"scheduling": False}, "comp_cores", "beside another thread"),
        ({"placements": [{"rank": 9, "comp_cores": [0]}]}, "placements.rank", "rank 9 does not exist"),
        ({"dt": 1.0}, "dt", "unstable"),
    ],
)
def test_a_configuration_that_cannot_be_met_ends_all_ranks_with_one_sentence(
    diffusion: Path, tmp_path: Path, changes: Record, field: str, words: str
) -> None:
    code, (answer,) = run(diffusion, tmp_path, 7 if field == "parts" else 2, config(**changes))
    assert code == 2
    assert (answer["record"], answer["field"]) == ("error", field)
    assert words in answer["message"]


def test_volumes_need_no_mpi_and_refuse_what_cannot_be_partitioned(diffusion: Path) -> None:
    command = [str(diffusion), "volumes", "--resolution", "8", "--json", "--each"]
    done = subprocess.run([*command, "--parts", "1,2,8"], capture_output=True, text=True, timeout=PATIENCE)
    told = json.loads(done.stdout)
    assert [one["parts"] for one in told["volumes"]] == [1, 2, 8]
    for one in told["volumes"]:
        assert sum(rank["cells"] for rank in one["ranks"]) == told["cells"]
        sent = [size for rank in one["ranks"] for _, size in rank["sent"]]
        assert sum(sent) == one["sent_total"]
        assert max(sent, default=0) == one["message_largest"]
    refused = subprocess.run([*command, "--parts", "9999"], capture_output=True, text=True, timeout=PATIENCE)
    assert refused.returncode == 2
    assert "more ranks than" in json.loads(refused.stdout)["message"]


def test_an_application_that_does_not_exist_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="one of: diffusion"):
        build.application("diffussion")


def test_steps_on_an_irregular_mesh_of_a_file_are_the_same_on_any_number_of_ranks(
    diffusion: Path, tmp_path: Path
) -> None:
    mesh = box(6, jiggle=0.1)
    file = tmp_path / "body.mesh"
    write_mesh(file, mesh, check_mesh(mesh, file))
    sums = set()
    for ranks, order in ((1, "hilbert"), (2, "tiles"), (2, "rcm")):
        settings = config(mesh=str(file), reorder=order)
        del settings["program"]["resolution"]
        code, (hello, *answers) = run(
            diffusion, tmp_path, ranks, settings, ask("overlap", 5), ask("apart", 5)
        )
        assert code == 0
        assert hello["cells"] == 6 * 6**3
        assert all(answer["validated"] for answer in answers)
        sums |= {answer["checksum"] for answer in answers}
    assert len(sums) == 1


def test_a_mesh_that_is_none_is_refused(diffusion: Path, tmp_path: Path) -> None:
    file = tmp_path / "body.mesh"
    file.write_bytes(b"ELBMESH1")
    settings = config(mesh=str(file))
    del settings["program"]["resolution"]
    code, (error,) = run(diffusion, tmp_path, 2, settings)
    assert code == 2
    assert (error["field"], error["value"]) == ("mesh", str(file))
