"""Programs behind an emulated NIC that open MPI by themselves, fork, vfork, and leave descriptors behind."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import benchmark_modules
from elbowroom.launch import build, nic
from elbowroom.launch.mpi import Mpi, launch_environment
from elbowroom.launch.nic import NicSettings
from traced import MPIS, mpi_called

_TRANSFERS = benchmark_modules.load("nic_transfers")
read_transfers = _TRANSFERS.read_transfers

SOURCE = Path(__file__).with_name("nic_program.c")
SECONDS = 60

UCX = """
static int worker, progressed;
int ucp_worker_create(void* context, const void* parameters, void** made) {
  (void)context, (void)parameters;
  *made = &worker;
  return 0;
}
unsigned ucp_worker_progress(void* same) { return ++progressed, same == &worker; }
void ucp_worker_destroy(void* same) { (void)same; }
int times_progressed(void) { return progressed; }
"""

USER = """
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>
int ucp_worker_create(void*, const void*, void**);
void ucp_worker_destroy(void*);
int times_progressed(void);
/* Its launcher answers late: 0 where it made progress meanwhile. */
int use(void) {
  int ends[2];
  char byte;
  void* worker = NULL;
  if (ucp_worker_create(NULL, NULL, &worker) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 2;
  if (fork() == 0) {
    usleep(50000);
    _exit(write(ends[1], "", 1) == 1 ? 0 : 1);
  }
  if (read(ends[0], &byte, 1) != 1) return 2;
  ucp_worker_destroy(worker);
  return times_progressed() > 0 ? 0 : 1;
}
"""

PLUGIN = """
#include <mpi.h>
int use(void) {
  int ranks = 0, sum = 0, one = 1;
  MPI_Init(0, 0);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return sum == ranks && ranks == 2 ? 0 : 1;
}
"""


def compiled(folder: Path, name: str, text: str, *flags: str, compiler: str = "cc") -> Path:
    source = folder / f"{name}.c"
    source.write_text(text)
    library = folder / f"lib{name}.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, *flags], check=True)
    return library


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nic") / "program"
    subprocess.run(["cc", "-o", path, SOURCE, "-ldl"], check=True)
    return path


def settings_for(bandwidth: float = 1e9, log: Path | None = None) -> NicSettings:
    return NicSettings(
        bandwidth=bandwidth, name=f"programs-{os.getpid()}", log=None if log is None else str(log)
    )


def environment(settings: NicSettings, rank: int | None) -> dict[str, str]:
    ranked = {} if rank is None else {"PMIX_RANK": str(rank)}
    return {**os.environ, **settings.environment(), **ranked, "LD_PRELOAD": str(nic.preloads(settings)[0])}


@pytest.mark.parametrize("rank", [0, None], ids=["limited", "not limited"])
def test_a_library_that_is_opened_locally_reaches_its_own_ucx(
    program: Path, tmp_path: Path, rank: int | None
) -> None:
    compiled(tmp_path, "ucx", UCX)
    user = compiled(tmp_path, "user", USER, f"-L{tmp_path}", "-lucx", f"-Wl,-rpath,{tmp_path}")
    env = environment(settings_for(), rank)
    ended = subprocess.run([program, "opens", user, "use"], env=env, timeout=SECONDS, check=False)
    assert ended.returncode == (0 if rank == 0 else 1)  # only a limited rank is helped


@pytest.mark.parametrize("kind", MPIS)
@pytest.mark.parametrize("limited", [True, False], ids=["limited", "not limited"])
def test_a_program_may_open_mpi_locally(kind: str, limited: bool, program: Path, tmp_path: Path) -> None:
    mpi: Mpi = mpi_called(kind)
    wrapper = mpi.compiler.replace("mpicxx", "mpicc")
    env = {**os.environ, **launch_environment()}
    os.environ.update(launch_environment())
    plugin = compiled(tmp_path, "plugin", PLUGIN, compiler=wrapper)
    more = ["--oversubscribe"] if mpi.kind == "openmpi" else []
    settings = settings_for()
    if not limited:
        env["ELBOW_NIC_NAME"] = ""
    words = [mpi.launcher, *more, "-n", "2", "env", f"LD_PRELOAD={build.nic_library()}"]
    if limited:
        words += [f"{name}={value}" for name, value in settings.environment().items()]
    ended = subprocess.run([*words, program, "opens", plugin, "use"], env=env, timeout=SECONDS, check=False)
    assert ended.returncode == 0


def test_a_child_that_exits_leaves_the_nic_to_its_parent(program: Path) -> None:
    settings = settings_for()
    with subprocess.Popen(
        [program, "forks"],
        env=environment(settings, 0),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"forked\n"
        assert len(nic.remove_unused(settings.name)) == 1
        parent.communicate()
    assert not nic.remove_unused(settings.name)
    assert not list(Path("/dev/shm").glob(f"elbow-nic-*-{settings.name}"))


def test_a_child_of_vfork_that_closes_descriptors_changes_nothing_for_its_parent(
    program: Path, tmp_path: Path
) -> None:
    settings = settings_for(1e6, tmp_path / "log")
    with subprocess.Popen(
        [program, "listens"], env=environment(settings, 0), stdout=subprocess.PIPE, text=True
    ) as receiver:
        assert receiver.stdout is not None
        port = receiver.stdout.readline().strip()
        subprocess.run(
            [program, "sends", port, "65536"], env=environment(settings, 1), timeout=SECONDS, check=True
        )
    sent = read_transfers(tmp_path / "log")
    assert sent.bytes.sum() == 65536


def test_what_another_user_made_under_the_name_is_refused(program: Path) -> None:
    settings = settings_for()
    path = Path(f"/dev/shm/elbow-nic-{os.geteuid()}-{settings.name}")
    path.write_bytes(bytes(1 << 20))
    path.chmod(0o666)
    try:
        ended = subprocess.run(
            [program, "forks"], env=environment(settings, 0), capture_output=True, text=True, check=False
        )
        assert ended.returncode == 1
        assert ended.stderr.startswith(
            f"elbow_nic: error: {path}: belongs to user {os.geteuid()} and has mode 666"
        )
        assert ended.stderr.endswith("remove it, or choose another ELBOW_NIC_NAME\n")
    finally:
        path.unlink()


def test_a_pipe_under_the_name_of_a_nic_is_left_alone() -> None:
    name = f"pipe-{os.getpid()}"
    path = Path(f"/dev/shm/elbow-nic-{os.geteuid()}-{name}")
    os.mkfifo(path)
    try:
        assert nic.remove_unused(name) == []
        assert path.exists()
    finally:
        path.unlink()
