"""Launchers, by the command line they build; how the MPI is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from elbowroom.errors import ElbowroomError, MachineError, UsageError
from elbowroom.launch.launcher import LaunchRequest, read_hostfile
from elbowroom.launch.launchers import build_launch, detect, host_count, names
from elbowroom.launch.mpi import (
    Mpi,
    find_mpi,
    launcher_identity,
    refused_persistent,
    refused_progress,
    wrapper_of,
)
from elbowroom.launch.session import check_hello, library_matches

OPENMPI5 = Mpi(
    kind="openmpi", version="5.0.8", prefix="/o", compiler="/o/bin/mpicxx", launcher="/o/bin/mpirun"
)
OPENMPI4 = Mpi(
    kind="openmpi", version="4.1.4", prefix="/o", compiler="/o/bin/mpicxx", launcher="/o/bin/mpirun"
)
MPICH = Mpi(kind="mpich", version="4.0.2", prefix="/m", compiler="/m/bin/mpicxx", launcher="/m/bin/mpiexec")
SLURM = {"SLURM_JOB_ID": "1"}


def request(mpi: Mpi = OPENMPI5, **changes: object) -> LaunchRequest:
    fields = {"ranks": 2, "ranks_per_host": 2, "probe": "/p/probe", "mpi": mpi, **changes}
    return LaunchRequest(**fields)


def words(name: str, asked: LaunchRequest, env: dict[str, str] | None = None) -> str:
    return " ".join(build_launch(name, asked, env or {}).command)


def test_local_starts_both_ranks_on_this_host_and_leaves_binding_to_the_probe() -> None:
    assert words("local", request()) == (
        "/o/bin/mpirun -n 2 --bind-to none --map-by ppr:2:node:OVERSUBSCRIBE /p/probe measure"
    )


def test_open_mpi_4_spells_oversubscription_as_an_option() -> None:
    line = words("local", request(OPENMPI4))
    assert line == "/o/bin/mpirun -n 2 --bind-to none --oversubscribe --map-by ppr:2:node /p/probe measure"


def test_mpich_is_started_by_hydra() -> None:
    assert words("local", request(MPICH)) == "/m/bin/mpiexec -n 2 -bind-to none -ppn 2 /p/probe measure"


@pytest.mark.parametrize(
    ("mpi", "setting"),
    [
        (OPENMPI5, ("OMPI_MCA_smsc", "^cma,xpmem,knem")),
        (OPENMPI4, ("OMPI_MCA_btl_vader_single_copy_mechanism", "none")),
        (MPICH, ("UCX_TLS", "posix,sysv,self")),
    ],
)
def test_on_one_host_messages_are_copied_twice_whatever_the_mpi(mpi: Mpi, setting: tuple[str, str]) -> None:
    env = build_launch("local", request(mpi), {}).env
    assert env[setting[0]] == setting[1]


def test_ranks_yield_only_where_they_share_a_core() -> None:
    assert build_launch("local", request(), {}).env["OMPI_MCA_mpi_yield_when_idle"] == "1"
    assert "OMPI_MCA_mpi_yield_when_idle" not in build_launch("local", request(share_core=False), {}).env


@pytest.mark.parametrize(
    ("mpi", "variable"),
    [(OPENMPI5, "OMPI_MCA_btl_tcp_progress_thread"), (MPICH, "MPIR_CVAR_ASYNC_PROGRESS")],
)
def test_the_librarys_own_progress_thread_is_started_only_where_it_is_wanted(mpi: Mpi, variable: str) -> None:
    assert build_launch("local", request(mpi, library_progress=True), {}).env[variable] == "1"
    assert variable not in build_launch("local", request(mpi), {}).env


def test_open_mpi_has_no_progress_thread_for_messages_in_shared_memory() -> None:
    assert "shared memory" in refused_progress(OPENMPI5, 1)
    assert refused_progress(OPENMPI5, 2) == refused_progress(MPICH, 1) == ""


def test_the_persistent_allgather_of_mpich_4_0_is_not_trusted() -> None:
    assert "wrong results" in refused_persistent(MPICH, "MPI_Allgather_init")
    assert refused_persistent(MPICH, "MPI_Allreduce_init") == ""
    assert refused_persistent(OPENMPI5, "MPI_Allgather_init") == ""


def test_a_setting_of_the_user_is_left_alone() -> None:
    assert "OMPI_MCA_pml" not in build_launch("local", request(), {"OMPI_MCA_pml": "ucx"}).env


def test_between_hosts_the_transport_is_the_mpis_choice() -> None:
    env = build_launch("mpiexec", request(ranks_per_host=1, hosts=("a", "b")), {}).env
    assert not {"OMPI_MCA_btl", "OMPI_MCA_pml", "OMPI_MCA_smsc"} & env.keys()


def test_a_long_tmpdir_is_replaced_since_socket_paths_are_short() -> None:
    assert build_launch("local", request(), {"TMPDIR": "/x" * 40}).env["TMPDIR"] == "/tmp"


def test_mpiexec_names_hosts_in_the_spelling_of_the_mpi(tmp_path: Path) -> None:
    two = {"ranks_per_host": 1, "hosts": ("a", "b")}
    assert "--host a:1,b:1" in words("mpiexec", request(**two))
    assert "-hosts a,b" in words("mpiexec", request(MPICH, **two))
    hostfile = tmp_path / "hosts"
    hostfile.write_text("a slots=1\n# a comment\nb slots=1\n\na\n")
    assert f"--hostfile {hostfile}" in words("mpiexec", request(ranks_per_host=1, hostfile=str(hostfile)))
    assert read_hostfile(str(hostfile)) == ("a", "b")


def test_open_mpi_sends_the_users_settings_of_the_network_to_other_hosts() -> None:
    two = {"ranks_per_host": 1, "hosts": ("a", "b")}
    env = {"UCX_TLS": "rc_verbs,self", "FI_PROVIDER": "verbs", "PATH": "/bin"}
    assert "-x FI_PROVIDER -x UCX_TLS /p/probe" in words("mpiexec", request(**two), env)
    assert "-x" not in words("mpiexec", request(MPICH, **two), env)
    assert "-x" not in words("local", request(), env)


def test_slots_written_into_a_hostfile_are_kept_to(tmp_path: Path) -> None:
    hostfile = tmp_path / "hosts"
    hostfile.write_text("a slots=1\n")
    with pytest.raises(UsageError, match="2 ranks need more than the 1 slots"):
        build_launch("mpiexec", request(hostfile=str(hostfile)), {})
    hostfile.write_text("a slots=2\n")
    assert "--hostfile" in words("mpiexec", request(hostfile=str(hostfile)))


def test_srun_binds_nothing_and_keeps_stdin_for_rank_0() -> None:
    line = words("srun", request(ranks_per_host=1), SLURM)
    for word in (
        "--ntasks=2",
        "--nodes=2",
        "--ntasks-per-node=1",
        "--cpu-bind=none",
        "--mpi=pmix",
        "--input=0",
    ):
        assert word in line.split()
    assert "--mpi=pmi2" in words("srun", request(MPICH), SLURM)


def test_flux_runs_in_the_instance_of_this_shell() -> None:
    line = words("flux", request(ranks_per_host=1), {"FLUX_URI": "local:///x"})
    assert line.startswith("flux run --nodes=2 --tasks-per-node=1")
    assert "cpu-affinity=off" in line


def test_pbs_takes_the_nodes_of_the_allocation(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes"
    nodes.write_text("a\nb\n")
    env = {"PBS_NODEFILE": str(nodes)}
    assert f"--hostfile {nodes}" in words("pbs", request(ranks_per_host=1), env)
    assert host_count("pbs", (), None, env) == 2


@pytest.mark.parametrize(
    ("name", "command"),
    [("ssh", "ssh -o BatchMode=yes -o ConnectTimeout=10 n1"), ("clush", "clush -N -S -q -t 10 -w n1")],
)
def test_a_launcher_without_mpi_starts_one_program_on_one_host(name: str, command: str) -> None:
    one = request(ranks=1, ranks_per_host=1, hosts=("n1",), probe="/a b/probe")
    assert words(name, one) == f"{command} '/a b/probe' measure"
    with pytest.raises(UsageError, match="starts each program without MPI"):
        build_launch(name, request(hosts=("n1", "n2")), {})


@pytest.mark.parametrize(
    ("env", "name"),
    [
        ({}, "local"),
        (SLURM, "srun"),
        ({"PBS_NODEFILE": "/n"}, "pbs"),
        ({"FLUX_URI": "x", "SLURM_JOB_ID": "1"}, "flux"),
    ],
)
def test_the_launcher_of_an_allocation_is_detected(env: dict[str, str], name: str) -> None:
    assert detect(env) == name
    assert detect(env) in names()


@pytest.mark.parametrize("name", ["srun", "flux", "pbs"])
def test_an_allocations_launcher_outside_of_one_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="no allocation here"):
        build_launch(name, request(), {})


@pytest.mark.parametrize(
    ("name", "changes", "sentence"),
    [
        ("nope", {}, "no such launcher"),
        ("mpiexec", {}, "needs the hosts"),
        ("mpiexec", {"hosts": ("a",), "ranks_per_host": 1}, "2 ranks need more than the 1 slots"),
        ("local", {"hosts": ("a", "b")}, "this host only"),
        ("mpiexec", {"hosts": ("a",), "hostfile": "f"}, "given twice"),
        ("mpiexec", {"hosts": ("a:1",)}, "more than the 1 slots of the hosts"),
        ("mpiexec", {"hostfile": "/does/not/exist"}, "cannot be read"),
    ],
)
def test_a_request_a_launcher_cannot_meet_is_refused(
    name: str, changes: dict[str, object], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        build_launch(name, request(**changes), {})


def test_a_line_can_be_pasted_into_a_shell() -> None:
    launch = build_launch("local", request(probe="/with blank/probe"), {})
    assert "'/with blank/probe' measure" in launch.line()
    assert "OMPI_MCA_smsc='^cma,xpmem,knem'" in launch.line()


def test_launchers_say_who_they_are() -> None:
    assert launcher_identity("mpirun (Open MPI) 5.0.8\n") == ("openmpi", "5.0.8")
    assert launcher_identity("mpirun.openmpi (OpenRTE) 4.1.4\n") == ("openmpi", "4.1.4")
    assert launcher_identity("HYDRA build details:\n    Version:      4.0.2\n") == ("mpich", "4.0.2")
    assert launcher_identity("srun 22") == (None, "")


def test_library_and_launcher_belong_together_or_not() -> None:
    assert library_matches("Open MPI v5.0.8, package: x", OPENMPI5)
    assert not library_matches("Open MPI v5.0.11, package: x", OPENMPI5)
    assert library_matches("MPICH Version:\t4.0.2\nMPICH Release date:", MPICH)
    assert not library_matches("MPICH Version:\t4.0.2\n", OPENMPI5)


@pytest.mark.parametrize(
    ("changes", "kind", "sentence"),
    [
        ({"ranks": [{}]}, MachineError, "2 ranks were requested but 1 started"),
        ({"mpi": {"library": "Open MPI v4.1.4"}}, UsageError, "launcher belongs to Open MPI 5.0.8"),
        ({"protocol": 2}, MachineError, "speaks protocol 2"),
    ],
)
def test_a_probe_that_came_up_wrong_is_refused(
    changes: dict[str, object], kind: type[ElbowroomError], sentence: str
) -> None:
    hello = {
        "record": "hello",
        "protocol": 1,
        "ranks": [{}, {}],
        "mpi": {"library": "Open MPI v5.0.8"},
        **changes,
    }
    with pytest.raises(kind, match=sentence):
        check_hello(hello, 2, OPENMPI5, "mpirun probe")


def test_a_prefix_without_mpi_is_named_with_its_mend(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no bin/mpicxx") as caught:
        find_mpi(str(tmp_path))
    assert caught.value.field == "mpi"
    assert caught.value.value == str(tmp_path)


def test_a_launcher_of_another_mpi_is_refused(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_LAUNCHER", "4.1.4")
    with pytest.raises(
        UsageError, match=r"launcher belongs to Open MPI 4\.1\.4 but the library belongs to Open MPI 9\.9\.9"
    ):
        find_mpi(str(site))


def test_a_made_up_mpi_is_found_by_its_prefix(site: Path) -> None:
    mpi = find_mpi(str(site))
    assert (mpi.kind, mpi.version, mpi.launcher) == ("openmpi", "9.9.9", str(site / "bin" / "mpirun"))


@pytest.mark.parametrize("script", ["INPUT(libmpi.so.40)\n", "INPUT ( libmpi.so.40 )"])
def test_a_library_behind_a_linker_script_has_its_wrapper(tmp_path: Path, script: str) -> None:
    library, compiler = tmp_path / "lib" / "libmpi.so.40", tmp_path / "bin" / "mpicxx"
    for path in (library, compiler):
        path.parent.mkdir()
        path.touch(mode=0o755)
    (tmp_path / "lib" / "libmpi.so").write_text(script)
    assert wrapper_of(str(library), ask=lambda *_: "") == compiler
    (tmp_path / "lib" / "libmpi.so").write_text("INPUT(libother.so.1)\n")
    assert wrapper_of(str(library), ask=lambda *_: "") is None
