"""The srun launcher against a real Slurm of one node, started and stopped here with its own files and ports.

It works as root only, since slurmd starts tasks for any user. Debian: slurm-wlm and munge. PMIx between Slurm
and Open MPI also wants libpmix-dev, whose libpmix.so is what Slurm's plugin loads; MPICH speaks PMI2, which
Slurm has built in.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from elbowroom.errors import UsageError
from elbowroom.launch.build import probe
from elbowroom.launch.launcher import LaunchRequest
from elbowroom.launch.launchers import build_launch, detect
from elbowroom.launch.mpi import Mpi, find_mpi
from elbowroom.launch.session import Session
from elbowroom.plan.point import Unit

NEEDED = ("munged", "slurmctld", "slurmd", "srun", "salloc", "scancel", "sinfo", "squeue")

SLURM_CONF = """
ClusterName=elbowroom
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={controller_port}
SlurmdPort={daemon_port}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
ReturnToService=2
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


class Slurm:
    """The three daemons and one allocation of two tasks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        self.daemons: list[subprocess.Popen[bytes]] = []
        self.job = ""

    def start(self) -> None:
        """Starts the daemons; raises RuntimeError with the end of what they said when the node stays down."""
        self._configure()
        self._daemon(
            "munged", "--foreground", "--force", f"--key-file={self.folder}/munge.key",
            f"--socket={self.folder}/munge.socket", f"--pid-file={self.folder}/munged.pid",
            f"--log-file={self.folder}/munged.log", f"--seed-file={self.folder}/munge.seed",
        )  # fmt: skip
        self._until(lambda: (self.folder / "munge.socket").exists(), "munged")
        self._daemon("slurmctld", "-D", "-c")
        self._daemon("slurmd", "-D")
        self._until(lambda: self.output("sinfo", "-h", "-o", "%T") == "idle", "the node")

    def allocate(self) -> None:
        """An allocation that lasts until it is cancelled, as `salloc` at a prompt makes it."""
        granted = subprocess.run(
            ["salloc", "--no-shell", "--ntasks=2", "--nodes=1"],
            env=self.env, capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        self.job = granted.stderr.split("job allocation ")[1].split()[0]

    def stop(self) -> None:
        """Ends allocation and daemons; steps are children of slurmd's and go with their job."""
        if self.job:
            self.output("scancel", self.job)
            with contextlib.suppress(RuntimeError):
                self._until(lambda: self.output("squeue", "-h") == "", "the queue")
        for daemon in reversed(self.daemons):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(daemon.pid, signal.SIGTERM)
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(daemon.pid, signal.SIGKILL)
                daemon.wait()

    def output(self, *command: str) -> str:
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=30, check=False)
        return done.stdout.strip()

    def _configure(self) -> None:
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        controller_port, daemon_port = free_ports(2)
        conf = SLURM_CONF.format(
            host=socket.gethostname().split(".")[0], folder=self.folder, cores=max(2, os.cpu_count() or 2),
            controller_port=controller_port, daemon_port=daemon_port,
        )  # fmt: skip
        (self.folder / "slurm.conf").write_text(conf, encoding="utf-8")
        # Slurm 22 initialises a cgroup plugin even when nothing uses it, and v2 would want systemd.
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n", encoding="utf-8")

    def _daemon(self, *command: str) -> None:
        with open(self.folder / f"{command[0]}.out", "wb") as out:
            self.daemons.append(
                subprocess.Popen(
                    command,
                    env=self.env,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,
                )
            )

    def _until(self, ready: Callable[[], bool], what: str, seconds: float = 30.0) -> None:
        end = time.monotonic() + seconds
        while not ready():
            dead = [daemon.args for daemon in self.daemons if daemon.poll() is not None]
            if dead or time.monotonic() > end:
                raise RuntimeError(f"{what} did not start ({dead or 'too late'}): {self._log()}")
            time.sleep(0.2)

    def _log(self) -> str:
        files = sorted(self.folder.glob("*.out"))
        return " | ".join(" ".join(file.read_text(errors="replace").splitlines()[-3:]) for file in files)


def free_ports(count: int) -> list[int]:
    """Ports that are free now; all are held while they are chosen, so that they differ."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    if os.geteuid() != 0:
        pytest.skip("a Slurm of our own needs root")
    missing = [tool for tool in NEEDED if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (Debian: slurm-wlm and munge)")
    # munged refuses sockets in folders that others may write, and paths over 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="elbow-slurm-", dir="/tmp"))
    folder.chmod(0o755)
    cluster = Slurm(folder)
    try:
        try:
            cluster.start()
            cluster.allocate()
        except (RuntimeError, subprocess.SubprocessError) as error:
            pytest.skip(f"Slurm does not start here: {error}")
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def step(cluster: Slurm, monkeypatch: pytest.MonkeyPatch, mpi: Mpi) -> Iterator[Session]:
    """The probe's two ranks as a step of the allocation, by the launcher's own command line."""
    monkeypatch.setenv("SLURM_CONF", cluster.env["SLURM_CONF"])
    monkeypatch.setenv("SLURM_JOB_ID", cluster.job)
    assert detect(os.environ) == "srun"
    request = LaunchRequest(ranks=2, ranks_per_host=2, probe=str(probe(mpi)), mpi=mpi)
    live = Session(build_launch("srun", request), ranks=2, mpi=mpi)
    try:
        yield live
    finally:
        live.close()


def ask_for_one_phase(live: Session) -> None:
    """Counted messages come back only if rank 0 has read stdin and rank 1 has answered."""
    unit = Unit(point="srun-64KiB", repetition=0)
    answer = live.ask(
        unit,
        {
            "op": "measure",
            "point": unit.point,
            "repetition": unit.repetition,
            "sequence": ["B"],
            "kernel": "none",
            "cursor": 1,
            "comp_cores": [],
            "comp_node": 0,
            "computing_ranks": "first",
            "working_set": 0,
            "pattern": "pingpong",
            "size": 1 << 16,
            "comm_node": 0,
            "comm_cores": [0],
            "peer_cores": [0],
            "reuse": "same",
            "metric": "bandwidth",
            "window": 0.05,
            "steady": {"window": 7, "cov": 0.05, "limit": 0.3},
            "observe": [],
        },
        patience=60.0,
    )
    assert answer["record"] == "repetition", answer
    assert answer["phases"][0]["comm"]["messages"] > 0


def needs_pmix(cluster: Slurm) -> None:
    """Skips where Slurm's plugin finds no libpmix.so."""
    tried = subprocess.run(
        ["srun", f"--jobid={cluster.job}", "--overlap", "--mpi=pmix", "true"],
        env=cluster.env, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if "Invalid MPI type" in tried.stderr:
        pytest.skip("this Slurm cannot load PMIx (Debian: libpmix-dev)")


def test_srun_starts_the_probe_of_the_embedded_open_mpi_by_pmix(
    slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_pmix(slurm)
    with step(slurm, monkeypatch, find_mpi()) as live:
        assert len(live.hello["ranks"]) == 2
        ask_for_one_phase(live)


@pytest.mark.slow
def test_srun_starts_the_probe_of_mpich_by_pmi2(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        mpi = find_mpi("mpich")
    except UsageError as error:
        pytest.skip(f"no MPICH here: {error.message}")
    monkeypatch.delenv("ELBOWROOM_PROBE", raising=False)
    with step(slurm, monkeypatch, mpi) as live:
        assert len(live.hello["ranks"]) == 2
        ask_for_one_phase(live)


def test_a_probe_that_was_closed_leaves_no_step_behind(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_pmix(slurm)
    with step(slurm, monkeypatch, find_mpi()):
        during = steps(slurm)
    end = time.monotonic() + 30
    while steps(slurm) and time.monotonic() < end:
        time.sleep(0.2)
    assert during
    assert not steps(slurm)


def steps(cluster: Slurm) -> list[str]:
    """The running steps of the allocation, without the one that stands for the job itself."""
    lines = cluster.output("squeue", "-h", "-s", "-o", "%i").split()
    return [line for line in lines if not line.endswith((".extern", ".interactive", ".batch"))]
