"""Constant frequencies on a made-up /sys: what may be set, that it is set, and that it is always set back."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from elbowroom.errors import MachineError
from elbowroom.machine import frequencies
from elbowroom.machine.frequencies import (
    CORE,
    GOVERNOR,
    TURBO,
    UNCORE,
    Frequencies,
    FrequencyRefused,
    FrequencySettings,
)
from elbowroom.machine.topology import Core, Machine, NumaNode
from elbowroom.measure.manifest import compared
from elbowroom.measure.source import settable
from elbowroom.points.point import Point
from fake_cpufreq import POLICY, cpufreq_tree
from fake_cpufreq import setting_values as values

MACHINE = Machine(
    name="made-up",
    model="made-up",
    cores=(Core(number=0, logical=0, package=0, node=0, pus=(0,)),),
    nodes=(NumaNode(number=0, package=0, memory=1, cores=(0,)),),
    caches=(),
    nics=(),
    allowed=(0,),
    memory=1,
)


@pytest.fixture
def sys_root(tmp_path: Path) -> Path:
    return cpufreq_tree(tmp_path / "sys")


@pytest.fixture
def held(sys_root: Path, tmp_path: Path) -> Frequencies:
    return Frequencies(sys_root, tmp_path / "run" / "frequencies.json")


def change(root: Path, name: str, value: object) -> None:
    for path in root.rglob(name):
        path.write_text(f"{value}\n")


def kernel(root: Path, broken: Callable[[Path, str], bool] = lambda _path, _text: False) -> object:
    """A `put` that refuses what the kernel refuses: a minimum above the maximum, and what is `broken`."""
    write = frequencies.put

    def put(path: Path, text: str) -> None:
        if broken(path, text):
            raise OSError(errno.EBUSY, "Device or resource busy")
        pair = {"scaling_min_freq": "scaling_max_freq", "min_freq_khz": "max_freq_khz"}
        for low, high in pair.items():
            if path.name == low and int(text) > int((path.parent / high).read_text()):
                raise OSError(errno.EINVAL, "Invalid argument")
            if path.name == high and int(text) < int((path.parent / low).read_text()):
                raise OSError(errno.EINVAL, "Invalid argument")
        write(path, text)

    return put


def test_the_extremes_are_those_without_turbo(held: Frequencies) -> None:
    found = held.permitted()
    assert (found[CORE].low, found[CORE].high, found[CORE].reason) == (1_000_000, 2_300_000, "")
    assert (found[UNCORE].low, found[UNCORE].high, found[UNCORE].reason) == (1_200_000, 2_400_000, "")


def test_acpi_cpufreq_names_turbo_by_one_megahertz_more(sys_root: Path, held: Frequencies) -> None:
    for path in list(sys_root.rglob("base_frequency")):
        path.unlink()
        (path.parent / "scaling_available_frequencies").write_text("2301000 2300000 1000000\n")
    change(sys_root, "cpuinfo_max_freq", 2_301_000)
    assert held.permitted()[CORE].high == 2_300_000


def test_a_machine_without_cpufreq_says_so(tmp_path: Path) -> None:
    found = Frequencies(tmp_path, tmp_path / "state").permitted()
    assert "no cpufreq" in found[CORE].reason
    assert "no intel_uncore_frequency" in found[UNCORE].reason


OTHER_BITS = 0x8000_0000_0000_8080
"""Of the register: what does not belong to its two ratios."""


@pytest.fixture
def registers(tmp_path: Path) -> Path:
    """Two packages of two CPUs of Intel without the module, whose registers say 1.2 to 2.4 GHz."""
    for cpu in range(4):
        topology = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/topology"
        topology.mkdir(parents=True)
        (topology / "physical_package_id").write_text(f"{cpu // 2}\n")
        (tmp_path / f"dev/cpu/{cpu}").mkdir(parents=True)
        value = OTHER_BITS | 12 << 8 | 24
        (tmp_path / f"dev/cpu/{cpu}/msr").write_bytes(bytes(0x620) + value.to_bytes(8, "little"))
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("vendor_id\t: GenuineIntel\n")
    return tmp_path


def test_the_uncore_is_held_by_a_register_of_each_package_where_the_module_is_missing(
    registers: Path,
) -> None:
    held = Frequencies(registers / "sys", registers / "state")

    def value(cpu: int) -> int:
        return int.from_bytes((registers / f"dev/cpu/{cpu}/msr").read_bytes()[0x620:], "little")

    before = [value(cpu) for cpu in range(4)]
    assert (held.permitted()[UNCORE].low, held.permitted()[UNCORE].high) == (1_200_000, 2_400_000)
    with held.constant(FrequencySettings(uncore_khz=1_500_000)) as changed:
        assert [value(cpu) for cpu in (0, 2)] == [OTHER_BITS | 15 << 8 | 15] * 2
        assert changed() == ""
    assert [value(cpu) for cpu in range(4)] == before


def test_a_register_that_a_killed_run_left_is_set_back(registers: Path) -> None:
    left = frequencies.EarlierSettings(process=1, writes=(("../dev/cpu/0/msr", "1200000 2400000"),))
    (registers / "state").write_bytes(msgspec.json.encode(left))
    frequencies.put(registers / "dev/cpu/0/msr", "1500000 1500000")
    held = Frequencies(registers / "sys", registers / "state")
    assert "restored" in held.restore()
    assert (held.permitted()[UNCORE].low, held.permitted()[UNCORE].high) == (1_200_000, 2_400_000)


def test_a_frequency_between_two_ratios_is_refused_and_the_register_set_back(registers: Path) -> None:
    held = Frequencies(registers / "sys", registers / "state")
    with (
        pytest.raises(FrequencyRefused, match="1500000 1500000"),
        held.constant(FrequencySettings(uncore_khz=1_550_000)),
    ):
        raise AssertionError
    assert (held.permitted()[UNCORE].low, held.permitted()[UNCORE].high) == (1_200_000, 2_400_000)


@pytest.mark.parametrize(
    ("cpuinfo", "reason"),
    [
        ("vendor_id : GenuineIntel", "modprobe msr"),
        ("vendor_id : AuthenticAMD", "amd_hsmp"),
        ("CPU implementer : 0x41", "Arm's interconnect clock"),
    ],
)
def test_what_another_vendor_has_in_place_of_the_uncore_is_named(
    tmp_path: Path, cpuinfo: str, reason: str
) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(f"{cpuinfo}\n")
    assert reason in Frequencies(tmp_path / "sys", tmp_path / "state").permitted()[UNCORE].reason


def test_files_that_may_not_be_written_are_named(held: Frequencies, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_args: False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    found = held.permitted()
    assert "scaling_min_freq may not be written (needs root)" in found[CORE].reason
    assert "min_freq_khz may not be written (needs root)" in found[UNCORE].reason
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "read-only even for root" in held.permitted()[CORE].reason


def test_a_damaged_value_is_a_reason_and_no_crash(sys_root: Path, held: Frequencies) -> None:
    change(sys_root, "cpuinfo_min_freq", "<unknown>")
    assert "cannot be read" in held.permitted()[CORE].reason


def test_one_frequency_only_is_nothing_to_choose_from(sys_root: Path, held: Frequencies) -> None:
    change(sys_root, "base_frequency", 1_000_000)
    assert "one frequency only" in held.permitted()[CORE].reason


@pytest.mark.parametrize("khz", [1_000_000, 2_300_000])
def test_cores_are_held_constant_and_set_back(
    sys_root: Path, held: Frequencies, khz: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frequencies, "put", kernel(sys_root))
    change(sys_root, "scaling_min_freq", 1_500_000)
    change(sys_root, "scaling_max_freq", 1_800_000)
    before = values(sys_root)
    with held.constant(FrequencySettings(core_khz=khz)):
        for policy in sys_root.rglob("policy*"):
            found = values(policy, *POLICY)
            assert found["scaling_min_freq"] == found["scaling_max_freq"] == str(khz)
            assert (found["scaling_governor"], found["scaling_setspeed"]) == ("userspace", str(khz))
        assert values(sys_root, "min_freq_khz").keys() <= before.items() | before.keys()
        assert set(values(sys_root, "min_freq_khz").values()) == {"1300000"}
    assert values(sys_root) == before
    assert held.restore() == ""


def test_without_the_userspace_governor_equal_limits_hold_the_frequency(
    sys_root: Path, held: Frequencies
) -> None:
    change(sys_root, "scaling_available_governors", "performance powersave")
    with held.constant(FrequencySettings(core_khz=1_000_000)):
        assert set(values(sys_root, "scaling_max_freq", "scaling_min_freq").values()) == {"1000000"}
        assert set(values(sys_root, "scaling_governor").values()) == {"performance"}
    assert set(values(sys_root, "scaling_max_freq").values()) == {"3700000"}


def test_the_speed_that_a_user_had_chosen_comes_back(sys_root: Path, held: Frequencies) -> None:
    change(sys_root, "scaling_governor", "userspace")
    change(sys_root, "scaling_setspeed", 1_700_000)
    with held.constant(FrequencySettings(core_khz=1_000_000)):
        assert set(values(sys_root, "scaling_setspeed").values()) == {"1000000"}
    assert set(values(sys_root, "scaling_setspeed").values()) == {"1700000"}


def test_the_uncore_is_held_constant_and_set_back(
    sys_root: Path, held: Frequencies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frequencies, "put", kernel(sys_root))
    before = values(sys_root)
    for khz in (1_200_000, 2_400_000):
        with held.constant(FrequencySettings(uncore_khz=khz)):
            assert set(values(sys_root, "min_freq_khz", "max_freq_khz").values()) == {str(khz)}
            assert set(values(sys_root, "scaling_governor").values()) == {"performance"}
        assert values(sys_root) == before


def test_no_frequency_touches_nothing(tmp_path: Path) -> None:
    with Frequencies(tmp_path / "none", tmp_path / "state").constant(FrequencySettings()):
        assert not (tmp_path / "state").exists()


def test_an_exception_sets_back(sys_root: Path, held: Frequencies) -> None:
    before = values(sys_root)

    def fail() -> None:
        assert values(sys_root) != before
        raise RuntimeError("midway")

    with (
        pytest.raises(RuntimeError, match="midway"),
        held.constant(FrequencySettings(core_khz=1_000_000, uncore_khz=1_200_000)),
    ):
        fail()
    assert values(sys_root) == before


def test_a_refused_write_names_the_file_and_sets_the_others_back(
    sys_root: Path, held: Frequencies, monkeypatch: pytest.MonkeyPatch
) -> None:
    def second_policy_is_busy(path: Path, text: str) -> bool:
        return path.parent.name == "policy1" and path.name == "scaling_max_freq" and text == "1000000"

    monkeypatch.setattr(frequencies, "put", kernel(sys_root, second_policy_is_busy))
    before = values(sys_root)
    with pytest.raises(FrequencyRefused) as error, held.constant(FrequencySettings(core_khz=1_000_000)):
        pytest.fail("the block must not run")
    assert str(error.value.value).endswith("policy1/scaling_max_freq")
    assert "busy" in str(error.value)
    assert error.value.hint
    assert values(sys_root) == before


def test_a_frequency_that_the_driver_rounds_is_refused(
    sys_root: Path, held: Frequencies, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The uncore goes in steps of 100 MHz."""
    write = frequencies.put
    monkeypatch.setattr(
        frequencies, "put", lambda path, text: write(path, str(int(text) // 100_000 * 100_000))
    )
    with (
        pytest.raises(FrequencyRefused, match="'1200000' afterwards"),
        held.constant(FrequencySettings(uncore_khz=1_250_000)),
    ):
        pytest.fail("the block must not run")
    assert set(values(sys_root, "min_freq_khz").values()) == {"1300000"}


def test_what_cannot_be_set_back_is_an_error_and_stays_recorded(
    sys_root: Path, held: Frequencies, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = values(sys_root)
    with pytest.raises(MachineError, match=r"echo 1000000 > .*policy0/scaling_min_freq") as error:  # noqa: SIM117
        with held.constant(FrequencySettings(core_khz=1_000_000)):
            monkeypatch.setattr(
                frequencies, "put", kernel(sys_root, lambda path, _text: "policy0" in str(path))
            )
    assert not isinstance(error.value, FrequencyRefused)
    assert {name for name, value in values(sys_root).items() if before[name] != value} <= {
        name for name in before if "policy0" in name
    }
    monkeypatch.undo()
    assert "restored" in held.restore()
    assert values(sys_root) == before


HOLDER = """
import sys, time
from pathlib import Path
from elbowroom.machine.frequencies import Frequencies, FrequencySettings
settings = FrequencySettings(core_khz=1_000_000, uncore_khz=1_200_000)
with Frequencies(Path(sys.argv[1]), Path(sys.argv[2])).constant(settings):
    print("held", flush=True)
    time.sleep(60)
"""


def holder(sys_root: Path, state: Path) -> subprocess.Popen[str]:
    """A process that holds frequencies constant until it gets a signal."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(sys_root), str(state)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        # nohup, a shell's background job and a service may have had these ignored; a child inherits that.
        preexec_fn=default_dispositions,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def default_dispositions() -> None:
    """As a terminal starts a program: signals that end it do."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_that_end_a_process_set_back(sys_root: Path, tmp_path: Path, number: signal.Signals) -> None:
    before = values(sys_root)
    with holder(sys_root, tmp_path / "state") as process:
        assert values(sys_root) != before
        process.send_signal(number)
        process.wait(30)
    assert values(sys_root) == before


def test_what_a_killed_process_left_is_set_back_by_the_next_and_told(sys_root: Path, tmp_path: Path) -> None:
    before = values(sys_root)
    with holder(sys_root, tmp_path / "state") as process:
        process.kill()
    assert values(sys_root) != before
    later = Frequencies(sys_root, tmp_path / "state")
    assert f"process {process.pid}" in later.restore()
    assert values(sys_root) == before
    assert later.restore() == ""


def test_a_new_hold_after_a_kill_goes_back_to_the_settings_before_the_kill(
    sys_root: Path, tmp_path: Path
) -> None:
    before = values(sys_root)
    with holder(sys_root, tmp_path / "state") as process:
        process.kill()
    with Frequencies(sys_root, tmp_path / "state").constant(FrequencySettings(core_khz=2_300_000)):
        assert set(values(sys_root, "scaling_min_freq").values()) == {"2300000"}
    assert values(sys_root) == before


def test_a_living_holder_is_left_alone(sys_root: Path, tmp_path: Path) -> None:
    with holder(sys_root, tmp_path / "state") as process:
        during = values(sys_root)
        other = Frequencies(sys_root, tmp_path / "state")
        assert other.restore() == ""
        with (
            pytest.raises(FrequencyRefused, match="another elbowroom"),
            other.constant(FrequencySettings(core_khz=2_300_000)),
        ):
            pytest.fail("the block must not run")
        assert values(sys_root) == during
        process.terminate()


def test_a_torn_record_means_that_nothing_had_been_changed(sys_root: Path, tmp_path: Path) -> None:
    (tmp_path / "state").write_text('{"version":1,"process":7,"writes":[["devices/sys')
    before = values(sys_root)
    assert Frequencies(sys_root, tmp_path / "state").restore() == ""
    with Frequencies(sys_root, tmp_path / "state").constant(FrequencySettings(core_khz=1_000_000)):
        pass
    assert values(sys_root) == before


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_settings_that_cannot_be_kept_are_not_changed(
    sys_root: Path, held: Frequencies, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    before = values(sys_root)
    write, room = os.write, [40]

    def limited(handle: int, data: bytes) -> int:
        """Takes 40 bytes, then refuses, as a disk that is full does."""
        if not os.readlink(f"/proc/self/fd/{handle}").endswith("frequencies.json"):
            return write(handle, data)
        if room[0] == 0:
            raise OSError(number, os.strerror(number))
        part = bytes(data)[: room[0]]
        room[0] -= len(part)
        return write(handle, part)

    monkeypatch.setattr(os, "write", limited)
    with (
        pytest.raises(FrequencyRefused, match="earlier settings must be kept"),
        held.constant(FrequencySettings(core_khz=1_000_000)),
    ):
        pytest.fail("the block must not run")
    monkeypatch.undo()
    assert values(sys_root) == before
    assert held.restore() == ""


def test_a_short_write_of_earlier_settings_is_gone_on_with(
    sys_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, write = values(sys_root), os.write

    def short(handle: int, data: bytes) -> int:
        is_state = os.readlink(f"/proc/self/fd/{handle}") == str(tmp_path / "state")
        return write(handle, bytes(data)[:7] if is_state else data)

    monkeypatch.setattr(os, "write", short)
    held = Frequencies(sys_root, tmp_path / "state")
    with held.constant(FrequencySettings(core_khz=1_000_000)):
        kept = msgspec.json.decode((tmp_path / "state").read_bytes(), type=frequencies.EarlierSettings)
    assert kept.process == os.getpid()
    assert values(sys_root) == before


def test_nobody_else_can_lock_the_earlier_settings(sys_root: Path, tmp_path: Path) -> None:
    """A lock takes nothing but a file that can be opened for reading."""
    state = tmp_path / "state"
    state.touch(0o644)
    with Frequencies(sys_root, state).constant(FrequencySettings(core_khz=1_000_000)):
        assert state.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK])
def test_a_state_file_without_locks_is_used_without(
    sys_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    before = values(sys_root)

    def refuse(_handle: int, _how: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with holder(sys_root, tmp_path / "state") as process:
        process.kill()
    assert "restored" in Frequencies(sys_root, tmp_path / "state").restore()
    assert values(sys_root) == before


def test_a_machine_says_what_may_be_set_on_this_host(held: Frequencies) -> None:
    here = settable(MACHINE, held)
    assert here.permitted == (CORE, UNCORE, GOVERNOR)
    assert here.frequency_ranges == {CORE: (1_000_000, 2_300_000), UNCORE: (1_200_000, 2_400_000)}
    assert here.governors == ("performance", "userspace", "schedutil")
    assert here.refused == {TURBO: "the driver has no switch for turbo"}


POINT = Point(
    plan="frequency", kernel="none", n=0, size=4, comp_node=0, comm_node=0, comm_core=0, metric="latency",
    sequence=("B", "B"),
)  # fmt: skip


def test_a_run_is_resumed_by_another_user_unless_it_sets_frequencies(
    held: Frequencies, tmp_path: Path
) -> None:
    root, user = settable(MACHINE, held), settable(MACHINE, Frequencies(tmp_path / "none"))
    free: Any = SimpleNamespace(points=(POINT,))
    assert compared(root, free) == compared(user, free)
    bound: Any = SimpleNamespace(points=(POINT, msgspec.structs.replace(POINT, core_khz=1_000_000)))
    assert compared(root, bound) != compared(user, bound)
    assert compared(root, bound) == compared(root, bound)


def test_a_governor_is_held_and_set_back(sys_root: Path, held: Frequencies) -> None:
    before = values(sys_root)
    with held.constant(FrequencySettings(governor="schedutil")):
        assert set(values(sys_root, "scaling_governor").values()) == {"schedutil"}
    assert values(sys_root) == before
    with pytest.raises(FrequencyRefused), held.constant(FrequencySettings(turbo=False)):
        pytest.fail("there is no switch for turbo")


@pytest.mark.parametrize(("switch", "text"), [("intel_pstate/no_turbo", "1"), ("cpufreq/boost", "0")])
def test_turbo_is_switched_off_and_limits_that_it_moved_come_back(
    sys_root: Path, held: Frequencies, monkeypatch: pytest.MonkeyPatch, switch: str, text: str
) -> None:
    """Without turbo, drivers lower the limits to what is left, and do not raise them again."""
    file = sys_root / "devices/system/cpu" / switch
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"{1 - int(text)}\n")
    before = values(sys_root)
    write = frequencies.put

    def put(path: Path, written: str) -> None:
        write(path, written)
        if path == file and written == text:
            change(sys_root, "scaling_max_freq", 2_300_000)

    monkeypatch.setattr(frequencies, "put", put)
    with held.constant(FrequencySettings(turbo=False)):
        assert file.read_text().strip() == text
        assert set(values(sys_root, "scaling_max_freq").values()) == {"2300000"}
    assert file.read_text().strip() == str(1 - int(text))
    assert values(sys_root) == before


def test_a_governor_that_reverts_is_noticed(sys_root: Path, held: Frequencies) -> None:
    with held.constant(FrequencySettings(governor="schedutil")) as changed:
        assert changed() == ""
        change(sys_root, "scaling_governor", "performance")
        assert "scaling_governor was set to schedutil and holds 'performance'" in changed()


def test_core_and_uncore_are_held_together(sys_root: Path, held: Frequencies) -> None:
    before = values(sys_root)
    with held.constant(FrequencySettings(core_khz=2_300_000, uncore_khz=1_200_000)):
        assert set(values(sys_root, "scaling_min_freq").values()) == {"2300000"}
        assert set(values(sys_root, "max_freq_khz").values()) == {"1200000"}
    assert values(sys_root) == before
