"""Two guests as two hosts: a network between them, ssh without a question, a folder that both see, Slurm."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from guest import Card, Guest, Shape

ADDRESSES = {"a": "10.9.0.1", "b": "10.9.0.2"}
ELBOWROOM = "/root/elbowroom/elbowroom"
COMMON = "/common"
"""Where both hosts see the same folder, as a cluster's shared file system."""

SLURM = """\
ClusterName=emulated
SlurmctldHost=a
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation=/run/slurm/state
SlurmdSpoolDir=/run/slurm/spool
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmdPidFile=/run/slurm/slurmd.pid
SlurmctldLogFile=/run/slurm/slurmctld.log
SlurmdLogFile=/run/slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
ReturnToService=2
MessageTimeout=60
NodeName=a,b CPUs=3 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

SET_UP = (
    # Its own name is the address that the other host knows.
    "sed -i /127.0.1.1/d /etc/hosts",
    "mkdir -p /run/sshd /root/.ssh",
    "cp /host/key /root/.ssh/id_ed25519",
    "cp /host/key.pub /root/.ssh/authorized_keys",
    "printf 'StrictHostKeyChecking no\\nUserKnownHostsFile /dev/null\\nLogLevel ERROR\\n' >/root/.ssh/config",
    "chmod 700 /root/.ssh",
    "chmod 600 /root/.ssh/*",
    "ssh-keygen -A >/dev/null",
    "/usr/sbin/sshd",
    f"mkdir -p {COMMON}",
    f"mount -t 9p -o trans=virtio,version=9p2000.L,cache=mmap common {COMMON}",
)
"""What a host does after a boot."""

SLURM_SET_UP = (
    "mkdir -p /run/slurm/state /run/slurm/spool /run/munge /var/log/munge /etc/slurm",
    "chown -R munge: /run/munge /var/log/munge /etc/munge /var/lib/munge",
    "chmod 755 /run/munge",
    f"printf %s {shlex.quote(SLURM)} >/etc/slurm/slurm.conf",
    # Slurm 22 initialises a cgroup plugin even when nothing uses it, and v2 would want systemd.
    "echo CgroupPlugin=cgroup/v1 >/etc/slurm/cgroup.conf",
    "setpriv --reuid=munge --regid=munge --clear-groups munged",
)


class Pair:
    """Hosts a and b; `folder` has the guests, and `common`, which both mount."""

    def __init__(self, image: Path, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.common = folder / "common"
        self.key = folder / "key"
        known = "".join(f"{address} {name}\n" for name, address in ADDRESSES.items())
        self.environment = ""
        self.guests: dict[str, Guest] = {}
        for name, way in (("a", "listen"), ("b", "connect")):
            card = Card(None, f"{way}:{port}", f"{ADDRESSES[name]}/24")
            # The third core is free: root's probe has the highest priority, and the launcher would starve.
            shape = Shape(sockets=1, cores=3, nodes=1, memory_mib=2560, cards=(card,))
            self.guests[name] = Guest(image, folder / name, shape, name, hosts=known, common=self.common)

    def start(self, names: str = "ab") -> None:
        """Boots hosts at once, the listening one first, and sets them up; the first failure is raised."""
        failures: list[Exception] = []

        def boot(name: str) -> None:
            try:
                self.guests[name].start()
                for part in (self.key, self.key.with_suffix(".pub")):
                    shutil.copy(part, self.guests[name].share / part.name)
                self.run(" && ".join(SET_UP), name)
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=boot, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
            thread.join(3)
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def stop(self) -> None:
        """Switches both off."""
        for guest in self.guests.values():
            guest.stop()

    def use_programs(self, folder: Path) -> None:
        """Programs that were built on this host, instead of the image's: probe, trace-reader, preload/."""
        shutil.copytree(folder, self.common / "programs", symlinks=True)
        for name in ("probe", "trace-reader", "preload"):
            if (folder / name).exists():
                variable = "trace-libraries" if name == "preload" else name
                self.environment += (
                    f"ELBOWROOM_{variable.upper().replace('-', '_')}={COMMON}/programs/{name} "
                )

    def run(self, line: str, name: str = "a", patience: float = 900, codes: Sequence[int] = (0,)) -> str:
        """What a shell line on a host prints; AssertionError unless it ends with one of `codes`."""
        done = self.guests[name].run(line, patience)
        if done.status not in codes:
            end = "\n".join(done.output.splitlines()[-20:])
            raise AssertionError(f"{line[:100]}: exit code {done.status}\n{end}")
        return done.output

    def elbowroom(self, words: str, patience: float = 1800, codes: Sequence[int] = (0,)) -> str:
        """The same of elbowroom on host a."""
        return self.run(self.line(words), "a", patience, codes)

    def line(self, words: str, settings: str = "") -> str:
        """The line of a shell that starts elbowroom, with variables of its environment."""
        return f"env {self.environment}{settings} {ELBOWROOM} {words}"

    def start_slurm(self, name: str) -> str:
        """Slurm's daemons on a host; the controller is on a."""
        daemons = ("slurmctld", "sleep 3", "slurmd") if name == "a" else ("slurmd",)
        self.run(" && ".join((*SLURM_SET_UP, *daemons)), name)
        return "munged, " + ", ".join(word for word in daemons if word.startswith("slurm"))


@contextlib.contextmanager
def running(image: Path, folder: Path) -> Iterator[Pair]:
    """Both hosts with fresh disks, switched off at the end."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "common").mkdir(parents=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key"], check=True)
    pair = Pair(image, folder)
    try:
        pair.start()
        yield pair
    finally:
        pair.stop()
