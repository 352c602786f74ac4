"""A launch line by its options: what it says, and the line with some of them replaced.

Options are those of mpirun (Open MPI 4 and 5), mpiexec (MPICH's Hydra), srun and flux run. A line is
rewritten as a user would type it: an option that is there already is replaced, not given twice.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from elbowroom.launch.launch_line import DIRECT, WRAPPERS, launcher_of
from elbowroom.launch.mpi import Mpi, launcher_identity, output

Family = Literal["openmpi4", "openmpi5", "mpich", "srun", "flux"]
"""Launchers that take the same options."""


class UnreadLine(Exception):
    """Why a launch line cannot be rewritten: a sentence without its full stop."""


class _FamilyOptions(NamedTuple):
    """The options of a family: how many words follow each (without dashes); `same`: the first spelling of
    options that have several; `short`: those of one letter whose value may follow in the same word.
    """

    words: Mapping[str, int]
    same: Mapping[str, str]
    short: str = ""


def _counts(**by_count: str) -> dict[str, int]:
    return {name: int(count[1:]) for count, names in by_count.items() for name in names.split()}


_OPENMPI = _FamilyOptions(
    _counts(
        _0="display-map display-allocation display-devel-map display-devel-allocation display-topo "
        "report-bindings oversubscribe nooversubscribe use-hwthread-cpus allow-run-as-root tag- "
        "output timestamp-output merge-stderr-to-stdout nolocal pernode bynode byslot bycore "
        "bysocket bind-to-core bind-to-socket bind-to-board bind-to-none v verbose q quiet V "
        "version h debug d do-not-launch do-not-resolve disable-recovery enable-recovery continuous "
        "index-argv-by-rank no-ready-msg nw use-regexp novm debug-daemons debug-devel leave- "
        "session-attached preload-binary s get-stack-traces report-state-on-timeout noprefix "
        "display-diffable-map show-progress stop-on-exec forward-signals exec-agent",
        _1="n np H host hostfile machinefile default-hostfile x map-by bind-to rank-by rankfile wdir "
        "path prefix npernode npersocket ppr cpu-set cpu-list slot-list cpus-per-proc output- "
        "filename timeout tune am stdin tmpdir personality report-uri report-pid xterm launch-agent "
        "max-vm-size output display runtime-options pidfile app ompi-server dvm dvm-uri preload- "
        "files file-maps max-restarts set-cwd-to omca-file stream-buffering",
        _2="mca gmca prtemca gprtemca pmixmca gpmixmca omca gomca",
    ),
    {
        "np": "n", "c": "n", "host": "H", "machinefile": "hostfile", "rf": "rankfile", "wd": "wdir",
        "N": "npernode", "cpus-per-rank": "cpus-per-proc", "rto": "runtime-options",
    },
)  # fmt: skip
_MPICH = _FamilyOptions(
    _counts(
        _0="genvall genvnone envall envnone l prepend-rank print-all-exitcodes verbose v info version "
        "profile disable-auto-cleanup enable-x disable-x disable-hostname-propagation skip-launch- "
        "node pmi-port order-ranks ranks-per-proc",
        _1="n f hosts host ppn wdir path configfile genvlist envlist bind-to map-by membind topolib "
        "launcher launcher-exec rmk outfile-pattern errfile-pattern prepend-pattern iface "
        "nameserver order-nodes localhost usize gpus-per-proc gtool gtoolfile arch s demux",
        _2="genv env",
    ),
    {
        "np": "n", "machinefile": "f", "hostfile": "f", "host": "hosts", "perhost": "ppn", "dir": "wdir",
        "binding": "bind-to", "bootstrap": "launcher", "bootstrap-exec": "launcher-exec",
    },
)  # fmt: skip
_SRUN = _FamilyOptions(
    _counts(
        _0="l label u unbuffered v verbose Q quiet X disable-status E preserve-env O overcommit s "
        "oversubscribe Z no-allocate H hold V version help usage exact exclusive whole overlap "
        "multi-prog spread-job use-min-nodes contiguous reboot debugger-test no-kill k test-only I "
        "pty immediate nice propagate kill-on-bad-exit K resv-ports",
        _1="A account b begin B extra-node-info c cpus-per-task C constraint cpu-bind cpu-freq d "
        "dependency D chdir e error export F nodefile G gpus gpus-per-node gpus-per-socket gpus- "
        "per-task gpu-bind gpu-freq gres hint i input J job-name jobid L licenses m distribution M "
        "clusters mem mem-bind mem-per-cpu mem-per-gpu mpi n ntasks N nodes ntasks-per-node ntasks- "
        "per-socket ntasks-per-core ntasks-per-gpu open-mode o output p partition prolog epilog "
        "task-prolog task-epilog q qos r relative R reservation signal S core-spec sockets-per-node "
        "cores-per-socket threads-per-core t time time-min T threads tres-per-task w nodelist W "
        "wait x exclude wckey network het-group pack-group comment export-file container deadline "
        "mail-type mail-user switches thread-spec slurmd-debug acctg-freq bcast",
    ),
    {
        "n": "ntasks", "c": "cpus-per-task", "N": "nodes", "m": "distribution", "O": "overcommit",
        "w": "nodelist",
    },
    "AbBcCdDeFGiJLmMnNopqrRStTwWx",
)  # fmt: skip
_FLUX = _FamilyOptions(
    _counts(
        _0="exclusive x label-io l unbuffered u verbose v dry-run watch wait debug quiet",
        _1="n ntasks c cores-per-task N nodes g gpus-per-task o setopt env env-remove env-file q queue "
        "t time-limit cwd S setattr output error input i rlimit cores tasks-per-node tasks-per-core "
        "gpus-per-node job-name B bank urgency dependency requires begin-time conf flags taskmap "
        "signal add-file",
    ),
    {"n": "ntasks", "c": "cores-per-task", "N": "nodes", "o": "setopt"},
    "ncNgoqtSB",
)
_FAMILIES: dict[Family, _FamilyOptions] = {
    "openmpi4": _OPENMPI, "openmpi5": _OPENMPI, "mpich": _MPICH, "srun": _SRUN, "flux": _FLUX,
}  # fmt: skip


class LaunchOption(NamedTuple):
    """An option as it was typed; `name`: without dashes, in its first spelling; `values`: what it has."""

    name: str
    words: tuple[str, ...]
    values: tuple[str, ...]


class LaunchLine(msgspec.Struct, frozen=True, kw_only=True):
    """A launch line in its parts: programs `before` the launcher (env, taskset) with their options, the
    launcher's words, its options, and the program with its arguments. `environment`: variables that are
    typed before the line, for launchers that have no option for them.
    """

    family: Family
    before: tuple[str, ...]
    launcher: tuple[str, ...]
    options: tuple[LaunchOption, ...]
    program: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def command(self) -> tuple[str, ...]:
        """All words, without `environment`."""
        options = (word for option in self.options for word in option.words)
        return (*self.before, *self.launcher, *options, *self.program)

    def typed(self) -> str:
        """As it is typed into a shell."""
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.environment]
        return " ".join([*variables, shlex.join(self.command)])

    def values(self, name: str) -> tuple[str, ...] | None:
        """The values of the last option of this name; None if there is none."""
        given = [option.values for option in self.options if option.name == name]
        return given[-1] if given else None

    def value(self, *names: str) -> str | None:
        """The one value of the last option with one of these names."""
        given = [option.values for option in self.options if option.name in names and option.values]
        return given[-1][0] if given else None

    def has(self, *names: str) -> bool:
        """Whether an option of one of these names is there."""
        return any(option.name in names for option in self.options)

    def without(self, names: Collection[str], first: str | None = None) -> LaunchLine:
        """The line without these options; with `first`, only those whose first value that is."""
        kept = tuple(
            option
            for option in self.options
            if option.name not in names or (first is not None and option.values[:1] != (first,))
        )
        return msgspec.structs.replace(self, options=kept)

    def having(self, *words: str) -> LaunchLine:
        """The line with one more option, in the place of one of the same name."""
        option, _ = _option(words, 0, _FAMILIES[self.family])
        here = [place for place, one in enumerate(self.options) if _same(one, option)]
        if not here:
            return msgspec.structs.replace(self, options=(*self.options, option))
        kept = [one for place, one in enumerate(self.options) if place not in here[1:]]
        kept[here[0]] = option
        return msgspec.structs.replace(self, options=tuple(kept))

    def having_mca(self, name: str, value: str) -> LaunchLine:
        """The line with a parameter of Open MPI, in the place of a value that it had."""
        variable = f"OMPI_MCA_{name}"
        line = self.without_assigned(variable)
        return line.without(("gmca",), name).having("--mca", name, value)

    def mca(self, name: str, env: Mapping[str, str]) -> str | None:
        """The value that the line, or else the environment, gives a parameter of Open MPI."""
        for option in reversed(self.options):
            if option.name in ("mca", "gmca", "omca") and option.values[0] == name:
                return option.values[1]
        return self.variable(f"OMPI_MCA_{name}", env)

    def variable(self, name: str, env: Mapping[str, str]) -> str | None:
        """The value of an environment variable of the ranks: by the launcher's options, `env` before the
        launcher, or the environment.
        """
        for option in reversed(self.options):
            for given, value in _exported(option, self.family):
                if given == name and value is not None:
                    return value
        for word in self.before:
            if word.startswith(f"{name}="):
                return word.partition("=")[2]
        return dict(self.environment).get(name, env.get(name))

    def having_variable(self, name: str, value: str) -> LaunchLine:
        """The line whose ranks get this value of an environment variable."""
        assigned = tuple(f"{name}={value}" if word.startswith(f"{name}=") else word for word in self.before)
        line = msgspec.structs.replace(self, before=assigned)
        options = tuple(
            option
            for option in line.options
            if all(given != name for given, _ in _exported(option, self.family))
        )
        exported = len(options) != len(line.options)
        line = msgspec.structs.replace(line, options=options)
        if assigned != self.before and not exported:
            return line
        if self.family == "mpich":
            return line._appended("-genv", name, value)
        if self.family == "srun":
            export = self.value("export")
            if export is None or export.split(",")[0] == "ALL":
                others = tuple(pair for pair in line.environment if pair[0] != name)
                return msgspec.structs.replace(line, environment=(*others, (name, value)))
            kept = [word for word in export.split(",") if word.partition("=")[0] not in (name, "NONE")]
            return line.having(f"--export={','.join([*kept, f'{name}={value}'])}")
        return (
            line._appended(f"--env={name}={value}")
            if self.family == "flux"
            else line._appended("-x", f"{name}={value}")
        )

    def without_variable(self, name: str, env: Mapping[str, str]) -> LaunchLine:
        """The line whose ranks do not get this environment variable."""
        options = tuple(
            option
            for option in self.options
            if all(given != name for given, _ in _exported(option, self.family))
        )
        line = msgspec.structs.replace(self.without_assigned(name), options=options)
        if name not in env:
            return line
        if line.before and Path(line.before[0]).name == "env":
            before = (line.before[0], "-u", name, *line.before[1:])
        else:
            before = ("env", "-u", name, *line.before)
        return msgspec.structs.replace(line, before=before)

    def without_assigned(self, name: str) -> LaunchLine:
        """The line without NAME=VALUE before its launcher; an `env` that is left with nothing goes, too."""
        kept = [word for word in self.before if not word.startswith(f"{name}=")]
        if len(kept) != len(self.before) and [Path(word).name for word in kept] == ["env"]:
            kept = []
        pairs = tuple(pair for pair in self.environment if pair[0] != name)
        return msgspec.structs.replace(self, before=tuple(kept), environment=pairs)

    def without_wrappers(self, names: Collection[str]) -> LaunchLine:
        """The line without these programs, before the launcher and before the program."""
        return msgspec.structs.replace(
            self, before=_unwrapped(self.before, names), program=_unwrapped(self.program, names)
        )

    def wrapped_by(self, names: Collection[str]) -> bool:
        """Whether the launcher or the program is started by one of these programs."""
        line = self.without_wrappers(names)
        return (line.before, line.program) != (self.before, self.program)

    def _appended(self, *words: str) -> LaunchLine:
        option, _ = _option(words, 0, _FAMILIES[self.family])
        return msgspec.structs.replace(self, options=(*self.options, option))


def family_of(words: Sequence[str], mpi: Mpi | None = None) -> Family:
    """The family of the launcher of a line; `mpi`: that of the launcher, else it is asked. UnreadLine if it
    is unknown.
    """
    place = launcher_of(words)
    if place is None:
        raise UnreadLine(
            "the command starts no launcher that is known: a launcher inside a script cannot be changed"
        )
    name = Path(words[place]).name
    if name in DIRECT:
        return "srun" if name == "srun" else "flux"
    if name.startswith("prterun"):
        return "openmpi5"
    if mpi is None:
        kind, version = launcher_identity(output(words[place], "--version"))
    else:
        kind, version = mpi.kind, mpi.version
    if kind is None:
        raise UnreadLine(f"{name} is the launcher of an MPI that is not known here")
    if kind == "mpich":
        return "mpich"
    return "openmpi4" if version.startswith(("1.", "2.", "3.", "4.")) else "openmpi5"


def read_line(words: Sequence[str], mpi: Mpi | None = None) -> LaunchLine:
    """The parts of a launch line; `mpi`: that of its launcher, else it is asked. UnreadLine if it
    cannot be rewritten.
    """
    words = list(words)
    family = family_of(words, mpi)
    place = launcher_of(words)
    assert place is not None
    begin = place + 1
    if family == "flux":
        if words[begin : begin + 1] != ["run"]:
            raise UnreadLine("only `flux run` is known")
        begin += 1
    known, options, at = _FAMILIES[family], [], begin
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        option, at = _option(words, at, known)
        options.append(option)
    at += words[at : at + 1] == ["--"]
    program = tuple(words[at:])
    line = LaunchLine(
        family=family,
        before=tuple(words[:place]),
        launcher=tuple(words[place:begin]),
        options=tuple(options),
        program=program,
    )
    _check(line)
    return line


def _check(line: LaunchLine) -> None:
    if not line.program:
        raise UnreadLine("the line names no program")
    if ":" in line.program or line.has("app", "configfile", "multi-prog", "het-group", "pack-group"):
        raise UnreadLine("the line starts several programs as one job, and their ranks are placed together")
    if line.has("rankfile") or (line.value("map-by") or "").lower().startswith(("rankfile", "seq")):
        raise UnreadLine("a rankfile places each rank: it is left as it is")


def _option(words: Sequence[str], at: int, known: _FamilyOptions) -> tuple[LaunchOption, int]:
    """The option at a place, and where the next word is."""
    word = words[at]
    text, equals, value = word.lstrip("-").partition("=")
    long = word.startswith("--") or not known.short
    if not long and text[:1] in known.short and (len(text) > 1 or equals):
        name = known.same.get(text[0], text[0])
        return LaunchOption(name, (word,), (word[2:].removeprefix("="),)), at + 1
    name = known.same.get(text, text)
    if equals:
        return LaunchOption(name, (word,), (value,)), at + 1
    count = known.words.get(name, known.words.get(text))
    if count is None:
        raise UnreadLine(f"the launcher's option {word} is not known here")
    end = at + 1 + count
    if end > len(words):
        raise UnreadLine(f"the launcher's option {word} lacks its value")
    return LaunchOption(name, tuple(words[at:end]), tuple(words[at + 1 : end])), end


_KEYED = {"mca", "gmca", "omca", "prtemca", "pmixmca", "genv", "env", "x", "setopt"}
"""Options that may be given several times, for different names."""


def _same(one: LaunchOption, other: LaunchOption) -> bool:
    """Whether the second replaces the first."""
    if one.name != other.name:
        return False
    if one.name not in _KEYED or not one.values:
        return True
    return one.values[0].partition("=")[0] == other.values[0].partition("=")[0]


def _exported(option: LaunchOption, family: Family) -> list[tuple[str, str | None]]:
    """Names and values of the environment variables that an option sets; None: that of the launcher."""
    if option.name in ("genv", "env") and len(option.values) == 2:
        return [(option.values[0], option.values[1])]
    if option.name in (("x",) if family.startswith("openmpi") else ("env",)) and option.values:
        name, equals, value = option.values[0].partition("=")
        return [(name, value if equals else None)]
    if option.name == "export" and option.values:
        pairs = (word.partition("=") for word in option.values[0].split(","))
        return [(name, value) for name, equals, value in pairs if equals]
    return []


def _unwrapped(words: tuple[str, ...], names: Collection[str]) -> tuple[str, ...]:
    """The words without wrappers of these names at their beginning."""
    kept: list[str] = []
    at = 0
    while at < len(words) and Path(words[at]).name in WRAPPERS:
        wrapper, name = WRAPPERS[Path(words[at]).name], Path(words[at]).name
        end = at + 1
        while end < len(words) and (words[end].startswith("-") or re.match(r"[A-Za-z_]\w*=", words[end])):
            valued = words[end] in wrapper.valued
            listed = name == "taskset" and words[end] in ("-c", "--cpu-list")
            if words[end] == "--":
                end += 1
                break
            end += 2 if valued and not listed else 1
        end += wrapper.words
        kept += words[at:end] if name not in names else ()
        at = end
    return (*kept, *words[at:])
