"""Memory traffic by the counters of a host: recorded trees of /sys, and perf events that a test counts."""

from __future__ import annotations

import errno
import itertools
import os
import time
from pathlib import Path

import pytest

from elbowroom.launch.memory_counters import CounterReader, Counters, Sampler, find_counters

MISSES = (0, 3, None)


class FakePerf:
    """Events that are there, by kind, config and CPU; each counts what it has opened for."""

    def __init__(self, *events: tuple[int, int, int | None], code: int = errno.ENOENT) -> None:
        self.events, self.code = set(events), code
        self.opened: list[tuple[int, int, int | None]] = []

    def __call__(self, kind: int, config: int, cpu: int | None) -> CounterReader:
        if (kind, config, cpu) not in self.events:
            raise OSError(self.code, os.strerror(self.code))
        self.opened.append((kind, config, cpu))
        return lambda: 1000.0


def write(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")
    return path


def with_resctrl(root: Path, *values: str) -> Path:
    for number, value in enumerate(values):
        write(root, f"sys/fs/resctrl/mon_data/mon_L3_{number:02}/mbm_total_bytes", value)
    return root


def with_controllers(root: Path) -> Path:
    for number in (0, 1):
        device = f"sys/bus/event_source/devices/uncore_imc_{number}"
        write(root, f"{device}/type", str(20 + number))
        write(root, f"{device}/cpumask", "0,32")
        write(root, f"{device}/events/cas_count_read", "event=0x04,umask=0x03")
        write(root, f"{device}/events/cas_count_write", "event=0x04,umask=0x0c")
        write(root, f"{device}/format/event", "config:0-7")
        write(root, f"{device}/format/umask", "config:8-15")
    return root


def test_resctrl_is_summed_over_the_caches(tmp_path: Path) -> None:
    found = find_counters(with_resctrl(tmp_path, "1000", "10"), FakePerf(MISSES))
    assert isinstance(found, Counters)
    assert (found.source, found.scope, found.read()) == ("resctrl", "host", 1010.0)


@pytest.mark.parametrize("text", ["Unavailable", "Error", ""])
def test_one_silent_cache_silences_resctrl(tmp_path: Path, text: str) -> None:
    found = find_counters(with_resctrl(tmp_path, "1000", text), FakePerf(MISSES))
    assert isinstance(found, Counters)
    assert found.source == "last-level cache misses"


def test_memory_controllers_are_read_on_a_cpu_of_each_socket(tmp_path: Path) -> None:
    wanted = itertools.product((20, 21), (0x304, 0xC04), (0, 32))
    perf = FakePerf(*wanted)
    found = find_counters(with_controllers(tmp_path), perf)
    assert isinstance(found, Counters)
    assert found.scope == "host"
    assert len(perf.opened) == 8
    # 8 counters of 1000 lines.
    assert found.read() == 8 * 1000 * 64


def test_misses_of_the_jobs_own_processes_come_last(tmp_path: Path) -> None:
    found = find_counters(tmp_path, FakePerf(MISSES))
    assert isinstance(found, Counters)
    assert (found.scope, found.read()) == ("job", 64000.0)


def test_without_counters_each_reason_is_given(tmp_path: Path) -> None:
    found = find_counters(with_controllers(tmp_path), FakePerf(code=errno.EACCES))
    assert isinstance(found, str)
    assert "resctrl is not mounted" in found
    assert found.count("perf_event_paranoid") == 2


def test_counters_that_another_tool_holds_are_busy_and_the_next_source_is_taken(tmp_path: Path) -> None:
    perf = FakePerf(MISSES, code=errno.EBUSY)
    found = find_counters(with_controllers(tmp_path), perf)
    assert isinstance(found, Counters)
    assert found.source == "last-level cache misses"
    assert "Device or resource busy" in str(
        find_counters(with_controllers(tmp_path), FakePerf(code=errno.EBUSY))
    )


def test_an_event_with_an_unknown_format_is_not_guessed(tmp_path: Path) -> None:
    root = with_controllers(tmp_path)
    write(root, "sys/bus/event_source/devices/uncore_imc_0/format/event", "config:0-7,32-35")
    found = find_counters(root, FakePerf())
    assert "format that is not known" in str(found)


def test_samples_are_bytes_since_the_first_one() -> None:
    counts = itertools.count(500, 100)
    with Sampler(Counters("made", "job", lambda: float(next(counts))), period=0.002) as sampler:
        time.sleep(0.02)
    traffic = sampler.traffic("here")
    assert traffic is not None
    assert traffic.bytes[0] == 0
    assert traffic.total == 100 * (len(traffic.bytes) - 1)
    assert list(traffic.times_ns) == sorted(traffic.times_ns)


def test_a_long_job_keeps_a_bounded_number_of_samples() -> None:
    counts = itertools.count()
    sampler = Sampler(Counters("made", "job", lambda: float(next(counts))))
    for _ in range(5000):
        sampler.take()
    traffic = sampler.traffic("here")
    assert traffic is not None
    assert len(traffic.bytes) < 4200
    assert traffic.total == 4999


def test_a_counter_that_stops_leaves_no_traffic() -> None:
    with Sampler(Counters("made", "job", lambda: None), period=0.001) as sampler:
        pass
    assert sampler.traffic("here") is None
