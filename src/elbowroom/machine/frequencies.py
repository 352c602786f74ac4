"""Constant core and uncore frequencies (paper, section 3.1), turbo and governor: what may be set here, set,
and always set back.

The earlier settings are on the disk before anything is changed, in one file per host that lives until the
next start of the machine, as the settings do. Whoever runs elbowroom next finds what a killed one left.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from elbowroom.errors import MachineError
from elbowroom.files import lock, write_all
from elbowroom.machine import uncore_register
from elbowroom.signals import ends_as_interrupt

CORE = "core_frequency"
UNCORE = "uncore_frequency"
TURBO = "turbo"
GOVERNOR = "governor"
"""Names in Machine.permitted, Machine.frequency_ranges, Machine.governors and Machine.refused."""

_CPUFREQ = "devices/system/cpu/cpufreq"
_TURBO = {
    "devices/system/cpu/intel_pstate/no_turbo": ("1", "0"),
    "devices/system/cpu/cpufreq/boost": ("0", "1"),
}
"""Files that switch turbo, and their text for off and for on."""
_UNCORE = "devices/system/cpu/intel_uncore_frequency"
_NO_CPUFREQ = (
    "no cpufreq (a virtual machine has none; elsewhere its driver, such as intel_pstate, is missing)"
)
_NO_TURBO = "the driver has no switch for turbo"
_ACPI_TURBO = 1000  # acpi-cpufreq names turbo by the highest frequency plus 1 MHz

Writes = tuple[tuple[str, str], ...]
"""(file below /sys, text), in the order of writing."""


class Permission(msgspec.Struct, frozen=True, kw_only=True):
    """The lowest and the highest frequency (kHz) that can be held constant, or the reason why none can.

    The highest is the one without turbo: above it the processor chooses by itself. `choices`: governors.
    """

    low: int = 0
    high: int = 0
    choices: tuple[str, ...] = ()
    reason: str = ""


class FrequencySettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is held meanwhile on a host: frequencies in kHz, turbo on or off, the governor; None: as it is."""

    core_khz: int | None = None
    uncore_khz: int | None = None
    turbo: bool | None = None
    governor: str | None = None


AS_IT_IS = FrequencySettings()


class FrequencyRefused(MachineError):
    """A frequency could not be set; the earlier settings are back."""


class EarlierSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What sets the frequencies back."""

    version: int = 1
    process: int
    writes: Writes


class _FrequencyLimits(msgspec.Struct, frozen=True, kw_only=True):
    """A cpufreq policy or a part of the uncore: files below /sys and the lowest frequency it takes, kHz."""

    minimum: str
    maximum: str
    floor: int

    def pin(self, low: str, high: str) -> Writes:
        """Limits low and high. By way of the lowest, since the kernel refuses a minimum above the maximum."""
        return (self.minimum, str(self.floor)), (self.maximum, high), (self.minimum, low)


class Frequencies:
    """The frequencies of this host. `state`: the file where earlier settings are kept meanwhile."""

    def __init__(self, root: Path = Path("/sys"), state: Path | None = None) -> None:
        self._root = root
        self._state = state or _state_file()

    def permitted(self) -> dict[str, Permission]:
        """What this process may hold constant; changes nothing."""
        looks = {CORE: self._core, UNCORE: self._uncore, TURBO: self._turbo, GOVERNOR: self._governor}
        return {name: self._permission(look) for name, look in looks.items()}

    @contextmanager
    def constant(self, wanted: FrequencySettings) -> Iterator[Callable[[], str]]:
        """Holds all cores and all of the uncore at these settings, then sets back. The block gets a function
        that says in a sentence what somebody else has changed of them since; empty when nothing.

        Raises FrequencyRefused before the block when a setting cannot be set, MachineError after it when one
        cannot be set back.
        """
        if wanted == AS_IT_IS:
            yield str
            return
        kept = None
        with ends_as_interrupt():
            try:
                with _undisturbed():
                    kept = self._take()
                    writes, undo = self._plan(wanted)
                    _keep(kept, EarlierSettings(process=os.getpid(), writes=undo), self._state)
                    self._write(writes, FrequencyRefused)
                yield lambda: self._changed(writes)
            finally:
                if kept is not None:
                    with _undisturbed():
                        self._give_back(kept)

    def restore(self) -> str:
        """Sets back what a killed run left, and says so in a sentence; empty when nothing was left."""
        try:
            handle = os.open(self._state, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return ""
        try:
            lock(handle)
            left = self._left(handle)
            if left is None:
                return ""
            self._set_back(handle, left)
        except BlockingIOError:
            # Another elbowroom holds frequencies constant at this moment and sets them back itself.
            return ""
        finally:
            os.close(handle)
        return f"restored the frequencies that process {left.process} left constant when it was killed"

    def _core(self) -> Permission:
        policies = self._policies()
        if not policies:
            return Permission(reason=_NO_CPUFREQ)
        files = [name for policy in policies for name in self._files(policy)]
        low = max(self._number(f"{policy}/cpuinfo_min_freq") for policy in policies)
        high = min(self._without_turbo(policy) for policy in policies)
        return self._allowed(files, low, high)

    def _uncore(self) -> Permission:
        parts = self._parts()
        if not parts:
            return self._uncore_register()
        files = [f"{part}/{name}_freq_khz" for part in parts for name in ("min", "max")]
        low = max(self._extreme(part, "min") for part in parts)
        high = min(self._extreme(part, "max") for part in parts)
        return self._allowed(files, low, high)

    def _uncore_register(self) -> Permission:
        """Between the limits that the registers have now: they do not tell those of the processor."""
        names = self._registers()
        if not any((self._root / name).exists() for name in names):
            return Permission(reason=uncore_register.absence(self._root))
        reason = self._unwritable(names)
        if reason:
            hint = "or set it before the run: likwid-setFrequencies --umin GHZ --umax GHZ"
            return Permission(reason=f"{reason}; {hint}")
        lowest, highest = zip(*(map(int, self._text(name).split()) for name in names), strict=True)
        return self._allowed(names, max(lowest), min(highest))

    def _turbo(self) -> Permission:
        switch = self._turbo_switch()
        reason = self._unwritable([switch]) if switch else _NO_TURBO
        return Permission(reason=reason)

    def _governor(self) -> Permission:
        policies = self._policies()
        if not policies:
            return Permission(reason=_NO_CPUFREQ)
        names = [self._text(f"{policy}/scaling_available_governors").split() for policy in policies]
        common = tuple(name for name in names[0] if all(name in others for others in names))
        reason = self._unwritable([f"{policy}/scaling_governor" for policy in policies])
        return Permission(reason=reason) if reason else Permission(choices=common)

    def _turbo_switch(self) -> str:
        """The file that switches turbo, below the root; empty where there is none."""
        return next((name for name in _TURBO if (self._root / name).exists()), "")

    def _permission(self, look: Callable[[], Permission]) -> Permission:
        try:
            return look()
        except (OSError, ValueError) as error:
            return Permission(reason=f"the driver's values cannot be read ({error})")

    def _unwritable(self, files: list[str]) -> str:
        """Why one of the files cannot be written; empty when all can."""
        for name in files:
            path = Path(os.path.normpath(self._root / name))
            if not path.exists():
                return f"the driver has no {path}"
            if not os.access(path, os.W_OK):
                why = "needs root" if os.geteuid() else "read-only even for root, as in a container"
                return f"{path} may not be written ({why})"
        return ""

    def _allowed(self, files: list[str], low: int, high: int) -> Permission:
        reason = self._unwritable(files)
        if reason:
            return Permission(reason=reason)
        if low >= high:
            return Permission(reason=f"there is one frequency only, {low} kHz")
        return Permission(low=low, high=high)

    def _policies(self) -> list[str]:
        folders = (self._root / _CPUFREQ).glob("policy*")
        return [f"{_CPUFREQ}/{path.name}" for path in sorted(folders, key=lambda path: path.name)]

    def _parts(self) -> list[str]:
        """Whole packages before the parts inside them (`uncoreNN`), so that these are set back last."""
        folders = (self._root / _UNCORE).glob("*/min_freq_khz")
        return [f"{_UNCORE}/{path.parent.name}" for path in sorted(folders)]

    def _registers(self) -> list[str]:
        """Those that hold the uncore's limits, where the kernel's module does not."""
        return [] if self._parts() else uncore_register.registers(self._root)

    def _files(self, policy: str) -> list[str]:
        names = ["scaling_min_freq", "scaling_max_freq"]
        if self._has_userspace(policy):
            names += ["scaling_governor", "scaling_setspeed"]
        return [f"{policy}/{name}" for name in names]

    def _has_userspace(self, policy: str) -> bool:
        name = f"{policy}/scaling_available_governors"
        return (self._root / name).exists() and "userspace" in self._text(name).split()

    def _without_turbo(self, policy: str) -> int:
        """Highest frequency of a policy that does not depend on what other cores do, kHz."""
        highest = self._number(f"{policy}/cpuinfo_max_freq")
        if (self._root / policy / "base_frequency").exists():
            return min(highest, self._number(f"{policy}/base_frequency"))
        if (self._root / policy / "scaling_available_frequencies").exists():
            steps = [int(step) for step in self._text(f"{policy}/scaling_available_frequencies").split()]
            if highest - _ACPI_TURBO in steps:
                return highest - _ACPI_TURBO
        return highest

    def _extreme(self, part: str, which: str) -> int:
        """The limit when the driver was loaded, which is the extreme of the range; else the limit now."""
        initial = f"{part}/initial_{which}_freq_khz"
        there = (self._root / initial).exists()
        return self._number(initial if there else f"{part}/{which}_freq_khz")

    def _plan(self, wanted: FrequencySettings) -> tuple[Writes, Writes]:
        """What to write to set the settings, and to set them back."""
        permitted = self.permitted()
        for name, value in zip((CORE, UNCORE, TURBO, GOVERNOR), msgspec.structs.astuple(wanted), strict=True):
            if value is not None and permitted[name].reason:
                raise FrequencyRefused(f"cannot be set: {permitted[name].reason}", field=name, value=value)
        writes: list[tuple[str, str]] = []
        undo: list[tuple[str, str]] = []
        try:
            self._plan_condition(wanted, writes, undo)
            for policy in self._policies() if wanted.core_khz is not None else ():
                self._plan_policy(policy, str(wanted.core_khz), writes, undo)
            for name in self._registers() if wanted.uncore_khz is not None else ():
                writes.append((name, f"{wanted.uncore_khz} {wanted.uncore_khz}"))
                undo.append((name, self._text(name)))
            for part in self._parts() if wanted.uncore_khz is not None else ():
                limits = _FrequencyLimits(
                    minimum=f"{part}/min_freq_khz",
                    maximum=f"{part}/max_freq_khz",
                    floor=self._extreme(part, "min"),
                )
                writes += limits.pin(str(wanted.uncore_khz), str(wanted.uncore_khz))
                undo += limits.pin(self._text(limits.minimum), self._text(limits.maximum))
        except (OSError, ValueError) as error:
            raise FrequencyRefused(f"cannot be read ({error})", field="frequency") from error
        return tuple(writes), tuple(undo)

    def _plan_condition(
        self, wanted: FrequencySettings, writes: list[tuple[str, str]], undo: list[tuple[str, str]]
    ) -> None:
        """Turbo and governor. Switching turbo changes limits, so these are set back behind it."""
        policies = self._policies()
        if wanted.turbo is not None:
            switch = self._turbo_switch()
            writes.append((switch, _TURBO[switch][wanted.turbo]))
            undo.append((switch, self._text(switch)))
            for policy in policies:
                undo += self._limits(policy).pin(*self._limits_now(policy))
        for policy in policies if wanted.governor is not None else ():
            governor, speed = f"{policy}/scaling_governor", f"{policy}/scaling_setspeed"
            before = self._text(governor)
            writes.append((governor, str(wanted.governor)))
            undo.append((governor, before))
            if before == "userspace":
                undo.append((speed, self._text(speed)))

    def _limits(self, policy: str) -> _FrequencyLimits:
        return _FrequencyLimits(
            minimum=f"{policy}/scaling_min_freq",
            maximum=f"{policy}/scaling_max_freq",
            floor=self._number(f"{policy}/cpuinfo_min_freq"),
        )

    def _limits_now(self, policy: str) -> tuple[str, str]:
        return self._text(f"{policy}/scaling_min_freq"), self._text(f"{policy}/scaling_max_freq")

    def _plan_policy(
        self, policy: str, khz: str, writes: list[tuple[str, str]], undo: list[tuple[str, str]]
    ) -> None:
        """Equal limits make any governor hold the frequency; `userspace` is what the paper used."""
        governor, speed = f"{policy}/scaling_governor", f"{policy}/scaling_setspeed"
        limits = self._limits(policy)
        writes += limits.pin(khz, khz)
        undo += limits.pin(*self._limits_now(policy))
        if self._has_userspace(policy):
            before = self._text(governor)
            writes += [(governor, "userspace"), (speed, khz)]
            undo.append((governor, before))
            if before == "userspace":
                undo.append((speed, self._text(speed)))

    def _take(self) -> int:
        """The state file, locked by this process; what a killed process left is set back first."""
        try:
            self._state.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self._state, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _not_kept(error, self._state) from error
        try:
            # Whoever may read the file may lock it, and so keep frequencies from being set back.
            os.fchmod(handle, 0o600)
            lock(handle)
            left = self._left(handle)
            if left is not None:
                self._set_back(handle, left)
        except BlockingIOError as error:
            os.close(handle)
            raise FrequencyRefused(
                "another elbowroom holds frequencies constant on this host",
                field="file",
                value=str(self._state),
                hint="wait until it has ended",
            ) from error
        except BaseException:
            os.close(handle)
            raise
        return handle

    def _give_back(self, handle: int) -> None:
        try:
            left = self._left(handle)
            if left is not None:
                self._set_back(handle, left)
        finally:
            os.close(handle)

    def _left(self, handle: int) -> EarlierSettings | None:
        """What is in the state file; None when it is empty, or torn: then nothing had been changed yet."""
        data = os.pread(handle, os.fstat(handle).st_size, 0)
        try:
            return msgspec.json.decode(data, type=EarlierSettings)
        except msgspec.ValidationError as error:
            raise MachineError(
                f"is not a record of earlier settings ({error})",
                field="file",
                value=str(self._state),
                hint="look at the limits of the frequencies by hand, then remove it",
            ) from error
        except msgspec.DecodeError:
            return None

    def _set_back(self, handle: int, left: EarlierSettings) -> None:
        self._write(left.writes, MachineError)
        os.ftruncate(handle, 0)

    def _write(self, writes: Writes, kind: type[MachineError]) -> None:
        """Writes all, also behind one that failed, and reads back; raises the first failure."""
        failures = []
        final = dict(writes)
        for name, text in writes:
            try:
                put(self._root / name, text)
            except OSError as error:
                failures.append(self._failure(kind, name, final[name], error.strerror or str(error)))
        for name, text, text_after in self._differences(final):
            failures.append(self._failure(kind, name, text, f"it holds {text_after!r} afterwards"))
        if failures:
            raise failures[0]

    def _differences(self, final: dict[str, str]) -> Iterator[tuple[str, str, str]]:
        """(file, text wanted, text there) of each file that holds another text."""
        for name, text in final.items():
            try:
                text_after = self._text(name)
            except OSError as error:
                text_after = error.strerror or str(error)
            if text_after != text:
                yield name, text, text_after

    def _changed(self, writes: Writes) -> str:
        for name, text, text_after in self._differences(dict(writes)):
            return f"{self._root / name} was set to {text} and holds {text_after!r}"
        return ""

    def _failure(self, kind: type[MachineError], name: str, text: str, why: str) -> MachineError:
        path = Path(os.path.normpath(self._root / name))
        if kind is not FrequencyRefused:
            hint = "as root: elbowroom doctor, which tries again"
            hint += "" if path.name == uncore_register.NAME else f", or echo {text} > {path}"
        else:
            steps = self._root / Path(name).parent / "scaling_available_frequencies"
            known = steps.read_text(encoding="ascii").strip() if steps.exists() else ""
            hint = f"choose one of: {known}" if known else "choose another frequency, or none"
        return kind(f"does not take {text} ({why})", field="frequency", value=str(path), hint=hint)

    def _text(self, name: str) -> str:
        if Path(name).name == uncore_register.NAME:
            return uncore_register.limits(self._root / name)
        return (self._root / name).read_text(encoding="ascii").strip()

    def _number(self, name: str) -> int:
        return int(self._text(name))


def put(path: Path, text: str) -> None:
    """Writes a file of sysfs, or the limits in a register; a file that does not exist is not made."""
    if path.name == uncore_register.NAME:
        uncore_register.set_limits(path, text)
        return
    handle = os.open(path, os.O_WRONLY | os.O_TRUNC)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


def _state_file() -> Path:
    """Where only root, or this user, can write, and a new start of the machine wipes."""
    private = os.environ.get("XDG_RUNTIME_DIR")
    base = Path(private) if private and os.geteuid() else Path("/run")
    return base / "elbowroom" / "frequencies.json"


def _keep(handle: int, left: EarlierSettings, path: Path) -> None:
    """Puts the earlier settings on the disk, whole; FrequencyRefused, before any change, where it cannot."""
    try:
        os.lseek(handle, 0, os.SEEK_SET)
        write_all(handle, msgspec.json.encode(left))
        os.fsync(handle)
    except OSError as error:
        os.ftruncate(handle, 0)
        raise _not_kept(error, path) from error


def _not_kept(error: OSError, path: Path) -> FrequencyRefused:
    return FrequencyRefused(
        f"cannot be written ({error.strerror}), and earlier settings must be kept before any change",
        field="file",
        value=str(path),
        hint="make its folder writable, with room",
    )


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Signals that end a process wait for the end of the block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda came, _frame: received.append(came)) for number in ending}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for came in received:
            signal.raise_signal(came)
