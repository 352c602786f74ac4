"""Emulated machines: Debian in QEMU with sockets, NUMA nodes, network cards by choice, and commands in them.

The disk is made by image.sh. Each guest has a folder: its own layer over that disk (what it wrote survives if
it is killed), the console's log, and the folder that it shares with this host, in which it finds commands and
leaves what they print.

    python3 tests/emulated/guest.py -- ./elbowroom/elbowroom doctor
    python3 tests/emulated/guest.py --sockets 1 --nodes 1 --cores 2 --memory 2048 -- nproc
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

REPOSITORY = Path(__file__).resolve().parents[2]
_HERE = Path(__file__).resolve().parent
_BOOT_S = 900.0
"""Patience with a boot: an emulated processor needs half a minute on an idle host, several on a busy one."""
_KVM_S = 20.0
"""A kernel under KVM panics for want of a disk within two seconds."""
_POLL_S = 0.2


class GuestError(Exception):
    """Why there is no machine, or no answer of one."""


@dataclass(frozen=True)
class Card:
    """A network card: behind the PCI root of NUMA `node` (None: at the first root). `link`: `listen:PORT` or
    `connect:PORT` of 127.0.0.1 joins two guests; empty: it is connected to nothing. `address`: `10.9.0.1/24`.
    """

    node: int | None = None
    link: str = ""
    address: str = ""


@dataclass(frozen=True)
class Shape:
    """What the machine has. `cores` are per socket; nodes share cores and `memory_mib` evenly."""

    sockets: int = 2
    cores: int = 2
    nodes: int = 4
    memory_mib: int = 4096
    cards: tuple[Card, ...] = (Card(node=2),)

    def distance(self, one: int, other: int) -> int:
        """10 to itself, 12 within a socket, 21 to another socket, as on the machines of the papers."""
        if one == other:
            return 10
        per_socket = max(self.nodes // self.sockets, 1)
        return 12 if one // per_socket == other // per_socket else 21


@dataclass(frozen=True)
class Done:
    """How a command ended, and all that it printed."""

    status: int
    output: str


@dataclass
class Command:
    """A command that was begun in a guest."""

    guest: Guest
    name: str

    @property
    def output(self) -> str:
        """What it has printed so far."""
        path = self.guest.commands / f"{self.name}.out"
        return path.read_text(errors="replace") if path.exists() else ""

    def wait(self, patience: float) -> Done:
        """Its end; GuestError if it takes longer than `patience` seconds, or the machine ends first."""
        status = self.guest.commands / f"{self.name}.status"
        self.guest.wait_for(status, patience, f"command {self.name}")
        return Done(int(status.read_text()), self.output)


@dataclass
class Guest:
    """One machine. `folder` is made if it is not there; `hosts` is appended to the guest's /etc/hosts;
    several guests may mount the folder `common` of this host (9p, tag `common`).
    """

    image: Path
    folder: Path
    shape: Shape = field(default_factory=Shape)
    name: str = "guest"
    accelerator: str = ""
    hosts: str = ""
    common: Path | None = None
    qemu: subprocess.Popen[bytes] | None = None
    begun: int = 0

    @property
    def share(self) -> Path:
        """The folder that the guest sees as /host."""
        return self.folder / "share"

    @property
    def commands(self) -> Path:
        """Where commands and what they print lie."""
        return self.share / "commands"

    @property
    def console(self) -> Path:
        """The log of the console, of the last start."""
        return self.folder / "console.log"

    def __enter__(self) -> Guest:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Boots; returns when the guest takes commands. GuestError with the console's end if it does not."""
        self.accelerator = self.accelerator or find_accelerator(self.image)
        self._make_share()
        self._make_disk()
        self.qemu = subprocess.Popen(
            ["nice", "-n", "5", *self.command()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=(self.folder / "qemu.log").open("wb"), start_new_session=True,
        )  # fmt: skip
        self.wait_for(self.share / "ready", _BOOT_S, "the boot")

    def begin(self, line: str) -> Command:
        """Starts a shell line in the guest, in /root; several may run at once."""
        self.begun += 1
        name = f"{self.begun:04}"
        part = self.commands / f"{name}.part"
        part.write_text(line + "\n")
        part.rename(self.commands / f"{name}.sh")
        return Command(self, name)

    def run(self, line: str, patience: float = 600.0) -> Done:
        """Runs a shell line in the guest to its end; GuestError if that takes longer than `patience` s."""
        return self.begin(line).wait(patience)

    def stop(self) -> None:
        """Lets the guest write its disk and switch off; kills it if it does not."""
        if self.qemu is None:
            return
        (self.share / "stop").touch()
        try:
            self.qemu.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
        self.qemu = None

    def kill(self) -> None:
        """As when the power fails: what the guest has not written to its disk is lost."""
        if self.qemu is not None:
            os.killpg(self.qemu.pid, signal.SIGKILL)
            self.qemu.wait()
            self.qemu = None

    def wait_for(self, path: Path, patience: float, text: str) -> None:
        """Waits for a file of the share; GuestError when the machine ends, or after `patience` seconds."""
        end = time.monotonic() + patience
        while not path.exists():
            if self.qemu is None or self.qemu.poll() is not None:
                raise GuestError(f"{self.name}: ended during {text}\n{self._last_lines()}")
            if time.monotonic() > end:
                raise GuestError(
                    f"{self.name}: {text} took longer than {patience:.0f} s\n{self._last_lines()}"
                )
            time.sleep(_POLL_S)

    def command(self) -> list[str]:
        """QEMU's command line."""
        shape = self.shape
        cpus = shape.sockets * shape.cores
        if cpus % shape.nodes:
            raise GuestError(f"{cpus} cores cannot be shared evenly by {shape.nodes} nodes")
        words = ["qemu-system-x86_64", "-machine", "q35", *_accelerator_words(self.accelerator)]
        words += ["-m", str(shape.memory_mib)]
        words += ["-smp", f"{cpus},sockets={shape.sockets},cores={shape.cores},threads=1"]
        words += _node_words(shape, cpus // shape.nodes)
        for number, card in enumerate(shape.cards):
            words += _card_words(self.name, number, card)
        words += ["-drive", f"file={self.folder}/disk.qcow2,if=none,id=disk,format=qcow2,cache=writeback"]
        words += ["-device", "virtio-blk-pci,drive=disk,bus=pcie.0,addr=0x10"]
        words += ["-fsdev", f"local,id=share,path={self.share},security_model=none,multidevs=remap"]
        words += ["-device", "virtio-9p-pci,fsdev=share,mount_tag=host,bus=pcie.0,addr=0x11"]
        if self.common is not None:
            words += ["-fsdev", f"local,id=common,path={self.common},security_model=none,multidevs=remap"]
            words += ["-device", "virtio-9p-pci,fsdev=common,mount_tag=common,bus=pcie.0,addr=0x12"]
        words += ["-kernel", f"{self.image}/vmlinuz", "-initrd", f"{self.image}/initrd.img"]
        boot = ["root=/dev/vda rw console=ttyS0 init=/sbin/emulated-first panic=-1 quiet mitigations=off"]
        words += ["-append", " ".join([*boot, *_clock_words(self.accelerator)])]
        words += ["-vga", "none", "-display", "none", "-monitor", f"unix:{self.folder}/monitor,server,nowait"]
        return [*words, "-serial", f"file:{self.console}", "-no-reboot"]

    def _make_share(self) -> None:
        shutil.rmtree(self.share, ignore_errors=True)
        self.commands.mkdir(parents=True)
        shutil.copy(_HERE / "agent.sh", self.share / "agent.sh")
        (self.share / "name").write_text(self.name + "\n")
        (self.share / "hosts").write_text(f"127.0.0.1 localhost\n127.0.1.1 {self.name}\n{self.hosts}")
        cards = [
            f"{_mac(self.name, number)} {card.address or '-'}\n"
            for number, card in enumerate(self.shape.cards)
        ]
        (self.share / "cards").write_text("".join(cards))
        self.begun = 0
        pack_checkout(self.share / "checkout.tar")

    def _make_disk(self) -> None:
        """The layer over the image's disk; one over a disk that was made again since is worthless."""
        disk, over = self.folder / "disk.qcow2", self.folder / "disk.over"
        base = (self.image / "disk.img").resolve()
        identity = str(base.stat().st_mtime_ns)
        if disk.exists() and over.exists() and over.read_text() == identity:
            return
        words = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(base), str(disk)]
        subprocess.run(words, check=True)
        over.write_text(identity)

    def _last_lines(self) -> str:
        texts = [
            path.read_text(errors="replace")
            for path in (self.folder / "qemu.log", self.console)
            if path.exists()
        ]
        return "\n".join("\n".join(texts).splitlines()[-15:])


def _node_words(shape: Shape, cpus: int) -> list[str]:
    """Memory and cores of all nodes, then the distances between them."""
    words = []
    for node in range(shape.nodes):
        words += ["-object", f"memory-backend-ram,id=m{node},size={shape.memory_mib // shape.nodes}M"]
        words += ["-numa", f"node,nodeid={node},memdev=m{node},cpus={node * cpus}-{(node + 1) * cpus - 1}"]
    for one in range(shape.nodes):
        for other in range(shape.nodes):
            words += ["-numa", f"dist,src={one},dst={other},val={shape.distance(one, other)}"]
    return words


def _card_words(name: str, number: int, card: Card) -> list[str]:
    """A virtio card on its network; behind a PCI root of its own where it has a NUMA node."""
    words, bus = [], "pcie.0"
    if card.node is not None:
        bus = f"port{number}"
        root = f"pxb-pcie,id=root{number},bus_nr={64 + 16 * number},numa_node={card.node},bus=pcie.0"
        port = f"pcie-root-port,id={bus},bus=root{number},chassis={number + 1},slot=0"
        words = ["-device", root, "-device", port]
    kind, _, where = card.link.partition(":")
    network = (
        f"socket,id=net{number},{kind}=127.0.0.1:{where}" if kind else f"user,id=net{number},restrict=on"
    )
    device = f"virtio-net-pci,netdev=net{number},bus={bus},mac={_mac(name, number)}"
    return [*words, "-netdev", network, "-device", device]


def _mac(name: str, number: int) -> str:
    """Guests of different names have different addresses."""
    code = zlib.crc32(name.encode())
    return f"52:54:{code >> 16 & 255:02x}:{code >> 8 & 255:02x}:{code & 255:02x}:{number:02x}"


def _accelerator_words(name: str) -> list[str]:
    """`kvm`, or `tcg`: a host thread for each emulated core."""
    # The capability is one that a nested host may offer and then refuse to set.
    if name == "kvm":
        return ["-accel", "kvm", "-cpu", "host,-arch-capabilities"]
    return ["-accel", "tcg,thread=multi", "-cpu", "max"]


def _clock_words(accelerator: str) -> list[str]:
    """Boot options: the clock of an emulated processor is its counter, since a look at the HPET takes QEMU's
    one lock and 1.2 us.
    """
    if accelerator == "kvm":
        return []
    words = ["clocksource=tsc", "tsc=reliable", "hpet=disable"]
    # The counter is the host's, whose kernel derives BogoMIPS from its frequency. A guest on a busy host
    # measures it wrongly.
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("bogomips"):
            words.append(f"tsc_early_khz={float(line.split(':')[1]) * 500:.0f}")
            break
    return words


def find_accelerator(image: Path) -> str:
    """`kvm` if the image's kernel starts under it, else `tcg`; found out once for an image."""
    known = image / "accelerator"
    if not known.exists():
        known.write_text("kvm" if _kvm_boots(image) else "tcg")
    return known.read_text()


def _kvm_boots(image: Path) -> bool:
    """Whether the kernel gets as far as it can without a disk, where it panics and ends."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    words = ["qemu-system-x86_64", "-machine", "q35", *_accelerator_words("kvm"), "-m", "512", "-smp", "2"]
    words += ["-kernel", f"{image}/vmlinuz", "-append", "console=ttyS0 panic=-1", "-no-reboot"]
    words += ["-display", "none", "-monitor", "none", "-serial", "stdio"]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_KVM_S)
    except subprocess.TimeoutExpired:
        return False
    return b"Unable to mount root fs" in done.stdout


def pack_checkout(archive: Path) -> None:
    """The files of this checkout as they are now: tracked, and those that git does not ignore."""
    listed = subprocess.run(
        ["git", "-C", REPOSITORY, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, check=True,
    ).stdout  # fmt: skip
    subprocess.run(
        ["tar", "-C", REPOSITORY, "-c", "-f", archive, "--null", "--ignore-failed-read", "-T", "-"],
        input=listed, check=True, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _card(text: str) -> Card:
    """`NODE`, `-` for none, or `NODE,LINK,ADDRESS`."""
    node, link, address = (*text.split(","), "", "")[:3]
    return Card(None if node == "-" else int(node), link, address)


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Runs one command in an emulated machine.")
    parser.add_argument(
        "--image", type=Path, default=REPOSITORY / "build" / "emulated", help="folder of image.sh"
    )
    parser.add_argument("--folder", type=Path, help="the guest's folder; default: IMAGE/guests/NAME")
    parser.add_argument("--name", default="guest")
    parser.add_argument("--sockets", type=int, default=2)
    parser.add_argument("--cores", type=int, default=2, help="of each socket")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--memory", type=int, default=4096, help="MiB of the machine")
    parser.add_argument(
        "--card", type=_card, action="append", metavar="NODE[,LINK,ADDRESS]",
        help="a network card behind NODE (-: none); LINK is listen:PORT or connect:PORT; default: 2",
    )  # fmt: skip
    parser.add_argument("--hosts", default="", help="lines of /etc/hosts, separated by ;")
    parser.add_argument(
        "--accelerator", default="", choices=["", "kvm", "tcg"], help="default: kvm where it works"
    )
    parser.add_argument("--patience", type=float, default=3600.0, help="seconds that the command may take")
    parser.add_argument(
        "--fresh", action="store_true", help="forget what an earlier guest of this folder wrote"
    )
    parser.add_argument("command", nargs="+")
    return parser.parse_args(words)


def main(words: Sequence[str]) -> int:
    """Boots, runs the command, prints what it prints, switches off; its exit code."""
    given = _arguments(words)
    folder = (given.folder or given.image / "guests" / given.name).absolute()
    if given.fresh:
        shutil.rmtree(folder, ignore_errors=True)
    cards = tuple(given.card or [Card(node=2 if given.nodes > 2 else None)])
    shape = Shape(given.sockets, given.cores, given.nodes, given.memory, cards)
    hosts = "".join(f"{line.strip()}\n" for line in given.hosts.split(";") if line.strip())
    guest = Guest(given.image.absolute(), folder, shape, given.name, given.accelerator or "", hosts)
    begun = time.monotonic()
    try:
        with guest:
            print(
                f"{guest.name}: booted by {guest.accelerator} in {time.monotonic() - begun:.0f} s",
                file=sys.stderr,
            )
            done = guest.run(" ".join(given.command), given.patience)
    except GuestError as error:
        print(error, file=sys.stderr)
        return 1
    print(done.output, end="")
    return done.status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
