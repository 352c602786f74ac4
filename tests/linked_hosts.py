"""Hosts on one machine: network namespaces whose links meet in a bridge, with host names of their own.

Only root can make them. `mpirun` runs on the first host; where it would use ssh to reach another one, a
script enters the namespaces of that one. MPI takes shared memory between ranks of equal host names, hence a
UTS namespace for each.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from elbowroom.launch.launcher import Launch

AGENT = """#!/bin/sh
# Called as ssh is: options, a host, a command line.
while :; do case $1 in -o) shift 2 ;; -*) shift ;; *) break ;; esac; done
case $1 in
{cases}
esac
shift
if test -n "$group"; then echo $$ > "/proc/{outside}/root$group/cgroup.procs" || exit 1; fi
exec ip netns exec "$space" unshare --uts {clocks} sh -c "hostname $name; $*"
"""


GROUPS = Path("/sys/fs/cgroup")
QUOTA = 1000
"""us of processor time in a period, the least that the kernel takes: all wait as long as the period is."""


class NoHostsError(Exception):
    """Why there can be none here."""


class LinkedHosts:
    """The namespaces, how to start a command on the first host, and what each sent over its link."""

    def __init__(self, folder: Path, names: Sequence[str], called: Mapping[str, str] | None = None) -> None:
        self.names = names
        self._called = called or {}
        self.addresses = {name: f"10.231.7.{place}" for place, name in enumerate(names, start=1)}
        self._hub = f"elbow{os.getpid()}hub"
        self._agent = folder / "ssh"
        self._groups: dict[str, Path] = {}

    def build(self, *, clocks_apart: bool = False) -> None:
        """Makes the namespaces; raises CalledProcessError where this is not allowed. `clocks_apart`: the
        clocks of all hosts but the first are 100,000 s ahead.
        """
        run("ip", "netns", "add", self._hub)
        run("ip", "-n", self._hub, "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", self._hub, "link", "set", "bridge", "up")
        for name in self.names:
            self.revive(name)
        self._clocks = "-T --monotonic 100000 --boottime 100000" if clocks_apart else ""
        self._write_agent()

    def revive(self, name: str) -> None:
        """Makes the namespace of a host, and its link."""
        space, link = self._space(name), self.link(name)
        run("ip", "netns", "add", space)
        run("ip", "-n", space, "link", "add", link, "type", "veth", "peer", "name", link,
            "netns", self._hub)  # fmt: skip
        run("ip", "-n", self._hub, "link", "set", link, "master", "bridge", "up")
        run("ip", "-n", space, "address", "add", f"{self.addresses[name]}/24", "dev", link)
        run("ip", "-n", space, "link", "set", "lo", "up")
        run("ip", "-n", space, "link", "set", link, "up")

    def _write_agent(self) -> None:
        cases = [
            f"{self.addresses[name]}) space={self._space(name)} name={self._called.get(name, name)} "
            f"group={self._groups.get(name, '')} ;;"
            for name in self.names
        ]
        # The first host, on which the script runs, has a /sys of its own without control groups.
        text = AGENT.format(cases="\n".join(cases), clocks=self._clocks, outside=os.getpid())
        self._agent.write_text(text, encoding="ascii")
        self._agent.chmod(0o755)

    def throttle(self, name: str, share: float) -> None:
        """What is started on a host from now on gets at most this share of a core, by its control group;
        NoHostsError where there is none.
        """
        first_version = (GROUPS / "cpu").is_dir()
        group = (GROUPS / "cpu" if first_version else GROUPS) / self._space(name)
        period = min(1_000_000, round(QUOTA / share))
        try:
            group.mkdir()
            self._groups[name] = group
            if first_version:
                (group / "cpu.cfs_period_us").write_text(f"{period}")
                (group / "cpu.cfs_quota_us").write_text(f"{QUOTA}")
            else:
                (group / "cpu.max").write_text(f"{QUOTA} {period}")
        except OSError as error:
            raise NoHostsError(f"no group with a limit of processor time here: {error}") from error
        self._write_agent()

    def remove(self) -> None:
        """Ends what still runs in the namespaces and removes them, and with them the links."""
        for space in (*map(self._space, self.names), self._hub):
            for pid in _output("ip", "netns", "pids", space).split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            subprocess.run(["ip", "netns", "delete", space], capture_output=True, check=False)
        for group in self._groups.values():
            with contextlib.suppress(OSError):
                group.rmdir()

    def link(self, name: str) -> str:
        """The name of a host's link, on both of its ends."""
        return f"e{os.getpid()}{name}"

    def limit(self, name: str, megabits: float, burst: str = "128kb", queue: str = "50ms") -> None:
        """A token bucket at both ends of a host's link, with a `queue` of what it sends in so long; more is
        lost.
        """
        for space in (self._space(name), self._hub):
            run("tc", "-n", space, "qdisc", "replace", "dev", self.link(name), "root",
                "tbf", "rate", f"{megabits}mbit", "burst", burst, "latency", queue)  # fmt: skip

    def kill(self, name: str) -> None:
        """Ends all that runs on a host and takes its link away, as a loss of power does."""
        for pid in _output("ip", "netns", "pids", self._space(name)).split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        run("ip", "netns", "delete", self._space(name))
        command = ["ip", "-n", self._hub, "link", "delete", self.link(name)]
        subprocess.run(command, capture_output=True, check=False)

    def sent(self, name: str) -> int:
        """Bytes that a host has sent over its link since it exists."""
        file = f"/sys/class/net/{self.link(name)}/statistics/tx_bytes"
        return int(_output("ip", "netns", "exec", self._space(name), "cat", file))

    def command_on(self, name: str, command: Sequence[str]) -> list[str]:
        """The same command on a host, in its control group, with the /sys of this machine."""
        group = self._groups.get(name)
        join = f"echo $$ > {group}/cgroup.procs && " if group else ""
        enter = ["nsenter", f"--net=/run/netns/{self._space(name)}", "unshare", "--uts"]
        return [*enter, "sh", "-c", f'{join}hostname {name} && exec "$@"', "sh", *command]

    def on_first(self, launch: Launch) -> Launch:
        """The same command, started on the first host."""
        first = self.names[0]
        enter = ["ip", "netns", "exec", self._space(first), "unshare", "--uts"]
        command = [*enter, "sh", "-c", f'hostname {first} && exec "$@"', "sh", *launch.command]
        agent = {name: str(self._agent) for name in ("PRTE_MCA_plm_ssh_agent", "OMPI_MCA_plm_rsh_agent")}
        env = {**agent, "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,self"}
        env["PATH"] = f"{self._agent.parent}:{os.environ['PATH']}"  # `--launcher ssh` takes it, too
        return msgspec.structs.replace(launch, command=tuple(command), env={**launch.env, **env})

    def _space(self, name: str) -> str:
        return f"elbow{os.getpid()}{name}"


@contextlib.contextmanager
def linked_hosts(
    folder: Path,
    names: Sequence[str],
    *,
    clocks_apart: bool = False,
    called: Mapping[str, str] | None = None,
) -> Iterator[LinkedHosts]:
    """Hosts of these short names; NoHostsError where there can be none. `called`: what some call themselves
    instead.
    """
    if os.geteuid() != 0:
        raise NoHostsError("network namespaces need root")
    for tool in ("ip", "unshare", "hostname"):
        if shutil.which(tool) is None:
            raise NoHostsError(f"{tool} is not installed (Debian: iproute2, util-linux, hostname)")
    hosts = LinkedHosts(folder, names, called)
    try:
        try:
            hosts.build(clocks_apart=clocks_apart)
            run("unshare", "--uts", *(["-T"] if clocks_apart else []), "true")
        except subprocess.CalledProcessError as error:
            raise NoHostsError(f"no network namespaces here: {error.stderr.strip()}") from error
        yield hosts
    finally:
        hosts.remove()


def run(*command: str) -> None:
    """A short command that must succeed."""
    subprocess.run(command, capture_output=True, text=True, check=True)


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
