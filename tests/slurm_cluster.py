"""A real Slurm with some nodes on this host, started and stopped with its own files and ports.

It works as root only, since slurmd starts tasks for any user. Debian: slurm-wlm and munge.
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
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from linked_hosts import LinkedHosts

NEEDED = ("munged", "slurmctld", "slurmd", "srun", "salloc", "scancel", "sinfo", "squeue")

SLURM_CONF = """
ClusterName=elbowroom
SlurmctldHost={host}({address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={controller_port}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
TmpFS={folder}/tmp-%n
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
ReturnToService=2
KillWait=5
"""
NODE_CONF = "NodeName={name} NodeHostname={host} NodeAddr={address} Port={port} CPUs={cores} State=UNKNOWN\n"


class NoSlurmError(Exception):
    """Why there can be none here."""


class Slurm:
    """The daemons: one slurmd for each of `nodes` nodes of this host, or on each of `hosts`, whose first one
    has the controller, too.
    """

    def __init__(self, folder: Path, nodes: int, hosts: LinkedHosts | None = None) -> None:
        self.folder = folder
        self.host = socket.gethostname().split(".")[0] if hosts is None else hosts.names[0]
        self._hosts = hosts
        # PMIx looks a node's name up.
        one_host = [self.host] if nodes == 1 else [f"node{number}" for number in range(nodes)]
        self.nodes = one_host if hosts is None else list(hosts.names)
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
        self._daemon("slurmctld", "-D", "-c", node=self.nodes[0])
        for name in self.nodes:
            self.start_node(name)
        self.wait_for_nodes()

    def wait_for_nodes(self) -> None:
        """Returns when all nodes can be allocated; RuntimeError where they cannot in time."""
        self._until(
            lambda: self.output("sinfo", "-h", "-o", "%T") == "idle", "a node", 30.0 + len(self.nodes)
        )

    def start_node(self, name: str) -> None:
        """Starts the slurmd of a node."""
        self._daemon("slurmd", "-D", "-N", name, node=name)

    def allocate(self, nodes: int = 1) -> None:
        """An allocation that lasts until it is cancelled, as `salloc` at a prompt makes it, and that a node
        which fails does not end.
        """
        words = ["salloc", "--no-shell", "--no-kill", f"--ntasks={max(2, nodes)}", f"--nodes={nodes}"]
        granted = subprocess.run(
            self._on(self.nodes[0], words),
            env=self.env, capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        self.job = granted.stderr.split("job allocation ")[1].split()[0]

    def allocation(self) -> dict[str, str]:
        """The environment of a program inside the allocation."""
        nodes = self.output("squeue", "-h", "-j", self.job, "-o", "%N")
        conf = self.env["SLURM_CONF"]
        return {"SLURM_CONF": conf, "SLURM_JOB_ID": self.job, "SLURM_JOB_NODELIST": nodes}

    def release(self) -> None:
        """Ends the allocation, if there is one."""
        if self.job:
            self.output("scancel", self.job)
            with contextlib.suppress(RuntimeError):
                self._until(lambda: self.output("squeue", "-h") == "", "the queue")
            self.job = ""

    def stop(self) -> None:
        """Ends allocation and daemons; steps are children of slurmd's and go with their job."""
        self.release()
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
        done = subprocess.run(
            self._on(self.nodes[0], command),
            env=self.env, capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip
        return done.stdout.strip()

    def _on(self, node: str, command: Sequence[str]) -> Sequence[str]:
        return command if self._hosts is None else self._hosts.command_on(node, command)

    def _configure(self) -> None:
        # PMIx makes a folder for each step, which the nodes of one host may not share.
        for name in ("state", *(f"{kind}-{node}" for kind in ("spool", "tmp") for node in self.nodes)):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        cores = max(2, os.cpu_count() or 2)
        controller_port, *ports = free_ports(1 + len(self.nodes))
        addresses = dict.fromkeys(self.nodes, "127.0.0.1") if self._hosts is None else self._hosts.addresses
        conf = SLURM_CONF.format(
            host=self.host,
            address=addresses[self.nodes[0]],
            folder=self.folder,
            controller_port=controller_port,
        )
        for name, port in zip(self.nodes, ports, strict=True):
            host = self.host if self._hosts is None else name
            conf += NODE_CONF.format(name=name, host=host, address=addresses[name], port=port, cores=cores)
        conf += "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"
        (self.folder / "slurm.conf").write_text(conf, encoding="utf-8")
        # Slurm 22 initialises a cgroup plugin even when nothing uses it, and v2 would want systemd.
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n", encoding="utf-8")

    def _daemon(self, *command: str, node: str = "") -> None:
        with open(self.folder / f"{command[0]}-{len(self.daemons)}.out", "wb") as out:
            self.daemons.append(
                subprocess.Popen(
                    self._on(node, command) if node else command,
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
            # A node that is killed ends by a signal.
            dead = [daemon.args for daemon in self.daemons if (daemon.poll() or 0) > 0]
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


@contextlib.contextmanager
def running_slurm(nodes: int) -> Iterator[Slurm]:
    """A cluster of its own; skips the tests where there can be none."""
    try:
        with slurm_daemons(nodes) as cluster:
            yield cluster
    except NoSlurmError as error:
        pytest.skip(str(error))


@contextlib.contextmanager
def slurm_daemons(nodes: int, hosts: LinkedHosts | None = None) -> Iterator[Slurm]:
    """The same on `hosts`, or on this one; NoSlurmError where there can be none."""
    if os.geteuid() != 0:
        raise NoSlurmError("a Slurm of our own needs root")
    missing = [tool for tool in NEEDED if shutil.which(tool) is None]
    if missing:
        raise NoSlurmError(f"not installed: {', '.join(missing)} (Debian: slurm-wlm and munge)")
    # munged refuses sockets in folders that others may write, and paths over 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="elbow-slurm-", dir="/tmp"))
    folder.chmod(0o755)
    cluster = Slurm(folder, nodes, hosts)
    try:
        try:
            cluster.start()
        except (RuntimeError, subprocess.SubprocessError) as error:
            raise NoSlurmError(f"Slurm does not start here: {error}") from error
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)
