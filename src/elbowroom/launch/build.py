"""The native programs and libraries: what each is built of and with, on first use, and kept (`native`).

The probe, applications and the recorder's libraries are built for an MPI and once for each; the simulators
and the reader of traces need none.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from ctypes.util import find_library
from functools import partial
from pathlib import Path
from typing import NamedTuple

from elbowroom.errors import MachineError, UsageError
from elbowroom.launch import native, starpu
from elbowroom.launch.mpi import Mpi, find_mpi
from elbowroom.launch.native import COMPILER_PACKAGES, Target, native_sources, source_key

DEBIAN_PACKAGES = (
    "g++ cmake ninja-build pkg-config libhwloc-dev libhwy-dev libcli11-dev nlohmann-json3-dev libfmt-dev "
    "libmetis-dev libopenblas-dev libprotozero-dev libotf2-trace-dev"
)
"""What building the probe and the applications needs, by the names of Debian and Ubuntu."""


class AppBuild(NamedTuple):
    """How a program of apps/ is built: folder, CMake options, Debian packages besides DEBIAN_PACKAGES, and
    the folders of `libraries` that are part of it.
    """

    folder: str
    options: tuple[str, ...]
    packages: str = ""
    over_starpu: bool = False
    libraries: tuple[str, ...] = ()


BLAS_FOLDERS = ("kernels", "factorizations", "broadcast")
"""Programs of apps/ that compute by a library of linear algebra."""


def blas_library() -> str:
    """The library of linear algebra by the name that pkg-config knows: ELBOWROOM_BLAS, or OpenBLAS."""
    return os.environ.get("ELBOWROOM_BLAS") or "openblas"


def blas_option() -> str:
    """The option of CMake that chooses it; UsageError where a library that was asked for is not there."""
    name = blas_library()
    if "ELBOWROOM_BLAS" in os.environ and not starpu.installed(name):
        raise UsageError(
            "is not known to pkg-config",
            field="ELBOWROOM_BLAS",
            value=name,
            hint="name another (pkg-config --list-all), or add its folder to PKG_CONFIG_PATH",
        )
    return f"-DELBOWROOM_BLAS={name}"


def scotch_option() -> str:
    """The option of CMake that says whether Scotch is there: a program that was built without it is built
    again once it is installed.
    """
    return f"-DELBOWROOM_SCOTCH={'OFF' if find_library('scotch') is None else 'ON'}"


TASKFLOW_FOLDERS = ("lib/broadcast", "lib/taskflow")
"""The libraries of programs that are task graphs."""

APPLICATIONS = {
    "diffusion": AppBuild("diffusion", ("-DELBOWROOM_APPS=ON",), libraries=("lib/gpu",)),
    "runtime": AppBuild("runtime", ("-DELBOWROOM_STARPU=ON",), starpu.DEBIAN_PACKAGES, True),
    "forwarder": AppBuild("broadcast", ("-DELBOWROOM_KERNELS=ON",), libraries=("lib/broadcast",)),
    "gpu-streams": AppBuild("gpu", ("-DELBOWROOM_GPU=ON",), libraries=("lib/gpu",)),
    "elbow_minikernel": AppBuild("minikernels", ("-DELBOWROOM_MINIKERNELS=ON",)),
    "kernels-openmp": AppBuild("kernels", ("-DELBOWROOM_KERNELS=ON",)),
    "kernels-starpu": AppBuild(
        "kernels", ("-DELBOWROOM_KERNELS=ON", "-DELBOWROOM_STARPU=ON"), starpu.DEBIAN_PACKAGES, True
    ),
    "factorizations-inline": AppBuild(
        "factorizations", ("-DELBOWROOM_FACTORIZATIONS=ON",), libraries=TASKFLOW_FOLDERS
    ),
    "factorizations-starpu": AppBuild(
        "factorizations",
        ("-DELBOWROOM_FACTORIZATIONS=ON", "-DELBOWROOM_STARPU=ON"),
        starpu.DEBIAN_PACKAGES,
        True,
        TASKFLOW_FOLDERS,
    ),
}
"""The programs of applications."""

SIMULATOR_PACKAGES = "g++ cmake ninja-build nlohmann-json3-dev"
"""The same of the simulators of requests and clocks, and of the cost model of broadcasts."""

SIMGRID_PACKAGE = "libsimgrid-dev"
BROADCAST_PACKAGES = f"{SIMULATOR_PACKAGES} pkg-config libcli11-dev {SIMGRID_PACKAGE}"
"""The same of the simulators by SimGrid."""

BENCH_PACKAGES = f"{SIMULATOR_PACKAGES} pkg-config"
"""The same of benchmarks over MPI, and of what is preloaded into programs, but an MPI, StarPU and OMPT."""

STARPU_MODULES = ("starpu-1.4", "starpu-1.3")
"""StarPU without MPI by the names that pkg-config knows it by, newest first."""

TRACE_FOLDERS = ("lib/trace", "lib/clock", "include", "core/base")
"""What the recorder and the reader of traces are made of."""


def probe(mpi: Mpi | None = None) -> Path:
    """The probe for `mpi` (default: the embedded one), built now if it is not in the cache.

    The environment variable ELBOWROOM_PROBE names one that was built already (packages of a site) and must
    then have been built for the same MPI. Raises MachineError with the compiler's last lines when it cannot
    be built.
    """
    return _with_mpi("probe", mpi)


def application(name: str, mpi: Mpi | None = None) -> Path:
    """The application `name` (one of APPLICATIONS) for `mpi`, built like the probe.

    The environment variable ELBOWROOM_NAME, in capitals, names one that was built already. MachineError if it
    cannot be built (METIS is missing, for instance); for a program with StarPU, UsageError if `mpi` (default:
    StarPU's) is not the MPI of StarPU.
    """
    if name not in APPLICATIONS:
        raise UsageError(
            "no such application", field="application", value=name, hint=f"one of: {', '.join(APPLICATIONS)}"
        )
    app = APPLICATIONS[name]
    if app.over_starpu:
        installed = starpu.find_starpu()
        mpi = installed.mpi if mpi is None else mpi
        reason = starpu.refused(installed, mpi)
        if reason:
            raise UsageError(reason, field="mpi", value=mpi.prefix)
    return _with_mpi(name, mpi, app)


def program_words(name: str, mpi: Mpi | None = None) -> tuple[str, ...]:
    """The words that start a program: an application, or the path of an installed package's executable or
    Python script.
    """
    if os.sep not in name:
        return (str(application(name, mpi)),)
    return (sys.executable, name) if name.endswith(".py") else (name,)


def has_simgrid(name: str = "broadcast-simulator") -> bool:
    """Whether a simulator of this name is given, or SimGrid is installed (now, where ./elbowroom can)."""
    if native.given(name) is not None or starpu.installed("simgrid"):
        return True
    return native.install(BROADCAST_PACKAGES) and bool(starpu.installed("simgrid"))


def _without_mpi(name: str, packages: str, *folders: str, recursive: bool = True) -> Path:
    """A program that needs no MPI, built now if it is not in the cache: in the first of `folders` of the
    sources, of all in them. The environment names one that was built already: ELBOWROOM_ and `name` in
    capitals. MachineError where it cannot be built, or needs SimGrid and that is not installed.
    """
    if packages == BROADCAST_PACKAGES and not has_simgrid(name):
        raise MachineError(
            f"is not installed, and the {name} needs it",
            field="simgrid",
            hint=f"as root: apt-get install {SIMGRID_PACKAGE}",
        )
    path = native.given(name)
    if path is not None:
        return path
    sources = native_sources()
    compiler = native.compiler_identity(name, packages)
    files = native.files_below(sources, folders, recursive=recursive)
    key = source_key(sources, files, [compiler])
    target = Target(name, sources / folders[0], (), (name,), packages, f"the {name} (some seconds, once)")
    return native.kept(target, f"{name}s", key)


simulator = partial(_without_mpi, "simulator", SIMULATOR_PACKAGES, "core/simulate", recursive=False)
"""The simulator of single requests (docs/guide/simulate.md)."""

clock_simulator = partial(
    _without_mpi, "clock-simulator", SIMULATOR_PACKAGES, "lib/clock", "include", "core/base"
)
"""The simulator of clocks (docs/reference/clock.md)."""

broadcast_simulator = partial(
    _without_mpi, "broadcast-simulator", BROADCAST_PACKAGES, "lib/broadcast", "include"
)
"""The simulator of broadcasts (docs/reference/broadcast.md)."""

broadcast_costs = partial(_without_mpi, "broadcast-costs", SIMULATOR_PACKAGES, "lib/broadcast", "include")
"""The cost model of broadcasts as a program."""

taskflow_simulator = partial(
    _without_mpi,
    "taskflow-simulator",
    f"{SIMULATOR_PACKAGES} libcli11-dev",
    "lib/taskflow", "lib/broadcast", "lib/guard", "include",
)  # fmt: skip
"""The simulator of task graphs (docs/reference/taskflow.md)."""

gpu_bench = partial(
    _without_mpi,
    "gpu-bench",
    f"{SIMULATOR_PACKAGES} pkg-config libhwloc-dev libhwy-dev libfmt-dev",
    "apps/gpu", "lib/gpu", "core/base", "core/kernels", "core/machine",
)  # fmt: skip
"""The program that measures an accelerator (docs/reference/gpu-bench.md). No CUDA is needed to build it."""

load_program = partial(
    _without_mpi,
    "elbow-load",
    f"{SIMULATOR_PACKAGES} pkg-config libhwloc-dev libhwy-dev libcli11-dev libfmt-dev",
    "apps/load", "core/base", "core/kernels", "core/machine",
)  # fmt: skip
"""The load of known memory traffic (docs/reference/demand.md)."""

trace_reader = partial(
    _without_mpi,
    "trace-reader",
    f"{SIMULATOR_PACKAGES} pkg-config libcli11-dev libprotozero-dev libotf2-trace-dev",
    "lib/trace/merge",
    *TRACE_FOLDERS,
)
"""The program that checks, counts and merges traces (docs/guide/trace.md)."""

json_events = partial(
    _without_mpi,
    "json-events",
    "g++ cmake ninja-build pkg-config libsimdjson-dev libisal-dev libprotozero-dev",
    "lib/events",
)
"""The program that reads large traces in JSON, and those of Perfetto."""

otf2_events = partial(
    _without_mpi,
    "otf2-events",
    "g++ cmake ninja-build pkg-config libotf2-trace-dev",
    "lib/events/otf2",
    "lib/events",
)
"""The program that reads large archives of OTF2."""


def nic_library() -> Path:
    """libelbow_nic.so, the emulated NIC (docs/reference/nic.md); ELBOWROOM_NIC names one."""
    path = native.given("nic")
    if path is not None:
        return path
    sources = native_sources()
    files = native.files_below(sources, ("lib/nic",))
    target = Target(
        "nic", sources / "lib" / "nic", (), ("libelbow_nic.so",), COMPILER_PACKAGES,
        "the emulated NIC (some seconds, once)", called="elbow_nic",
    )  # fmt: skip
    key = source_key(sources, files, [native.compiler_identity("nic", COMPILER_PACKAGES)])
    return native.kept(target, "nics", key)


def _bench(name: str, options: tuple[str, ...], *folders: str, mpi: Mpi | None = None) -> Path:
    """A program over MPI, built as `_without_mpi` does, for `mpi` (default: the embedded one)."""
    path = native.given(name)
    if path is not None:
        return path
    mpi = find_mpi() if mpi is None else mpi
    sources = native_sources()
    others = [native.compiler_identity(name, BENCH_PACKAGES)]
    others += [mpi.kind, mpi.version, mpi.prefix, mpi.compiler]
    files = native.files_below(sources, folders)
    target = Target(
        name,
        sources / folders[0],
        (*options, f"-DMPI_CXX_COMPILER={mpi.compiler}"),
        (name,),
        BENCH_PACKAGES,
        f"the {name} for {mpi.name} (half a minute, once)",
    )
    key = f"{mpi.kind}-{mpi.version}-{source_key(sources, files, others)}"
    return native.kept(target, f"{name}es", key)


broadcast_bench = partial(
    _bench, "broadcast-bench", ("-DELBOWROOM_MPI=ON",), "lib/broadcast", "lib/clock", "include", "core/base"
)
"""The program that measures broadcasts over MPI (docs/reference/broadcast.md)."""

network_bench = partial(_bench, "network-bench", (), "lib/profile/bench")
"""The program that measures what n senders of a node get together (`elbowroom nic measure`)."""


def trace_libraries(mpi: Mpi | None = None) -> Path:
    """The folder with the libraries that are preloaded into a traced or profiled program.

    These are libelbow_trace.so and libelbow_clock.so, also by their sonames; for an `mpi`
    libelbow_trace_mpi.so, libelbow_profile_mpi.so and
    libelbow_guard_mpi.so; and libelbow_trace_starpu.so and
    libelbow_trace_omp.so where StarPU and omp-tools.h are installed. ELBOWROOM_TRACE_LIBRARIES names such a
    folder, built for the same MPI.
    MachineError if they cannot be built.
    """
    path = native.given("trace-libraries")
    if path is not None:
        return path
    if mpi is not None and (prebuilt := native.prebuilt("preload", mpi)):
        return prebuilt
    sources = native_sources()
    compiler = native.compiler_identity("libraries of the recorder", BENCH_PACKAGES)
    versions = [f"{module} {starpu.installed(module)}" for module in STARPU_MODULES]
    others = [compiler, *versions, *map(str, omp_tools())]
    options: tuple[str, ...] = ()
    if mpi is not None:
        others += [mpi.kind, mpi.version, mpi.prefix, mpi.compiler]
        options = (f"-DMPI_C_COMPILER={_c_wrapper(mpi)}",)
    folders = (*TRACE_FOLDERS, "lib/guard", "lib/pmpi", "lib/profile", "lib/preload")
    files = native.files_below(sources, folders)
    files = [path for path in files if not {"merge", "outputs"} & set(path.relative_to(sources).parts)]
    files.append(sources / "VERSION")
    key = f"{mpi.kind}-{mpi.version}-" if mpi is not None else ""
    target = Target(
        "libraries of the recorder",
        sources / "lib" / "preload",
        options,
        (
            "preload/libelbow_trace.so",
            "preload/libelbow_trace.so.*",
            "preload/libelbow_clock.so*",
            "preload/libelbow_*_*.so",
        ),
        BENCH_PACKAGES,
        f"the recorder's libraries{f' for {mpi.name}' if mpi is not None else ''} (half a minute, once)",
        called="all",
    )
    return native.kept(target, "traces", f"{key}{source_key(sources, files, others)}").parent


def starpu_examples() -> Path:
    """The folder with the examples of lib/starpu_mpi, NAME-elbowroom and NAME-starpu, for StarPU's MPI.

    MachineError where StarPU-MPI is not installed, or they cannot be built.
    """
    path = native.given("starpu-examples")
    if path is not None:
        return path
    installed = starpu.find_starpu()
    mpi, sources = installed.mpi, native_sources()
    packages = f"{BENCH_PACKAGES} {starpu.DEBIAN_PACKAGES}"
    compiler = native.compiler_identity("examples of StarPU-MPI", packages)
    files = native.files_below(sources, ("lib/starpu_mpi", *TASKFLOW_FOLDERS, "include"))
    others = [compiler, installed.module, installed.version, mpi.kind, mpi.version, mpi.prefix, mpi.compiler]
    target = Target(
        "examples of StarPU-MPI",
        sources / "lib" / "starpu_mpi",
        (
            "-DELBOWROOM_EXAMPLES=ON",
            f"-DMPI_CXX_COMPILER={mpi.compiler}",
            f"-DMPI_C_COMPILER={_c_wrapper(mpi)}",
        ),
        ("broadcast-elbowroom", "*-elbowroom", "*-starpu"),
        packages,
        f"the examples of StarPU-MPI for {mpi.name} (half a minute, once)",
        called="examples",
    )
    key = f"{mpi.kind}-{mpi.version}-{source_key(sources, files, others)}"
    return native.kept(target, "starpu-examples", key).parent


def omp_tools() -> list[Path]:
    """The headers omp-tools.h that are installed: OMPT's, which GCC has not."""
    places = ("/usr/include", "/usr/lib/llvm-*/include/openmp", "/usr/lib/llvm-*/lib/clang/*/include")
    return sorted(path for place in places for path in Path("/").glob(f"{place[1:]}/omp-tools.h"))


def _c_wrapper(mpi: Mpi) -> Path:
    """The compiler of C beside that of C++."""
    wrapper = Path(mpi.compiler)
    return wrapper.with_name(wrapper.name.replace("mpicxx", "mpicc"))


def _with_mpi(name: str, mpi: Mpi | None, app: AppBuild | None = None) -> Path:
    """The probe, or the program of an application, linked to an MPI and to what it shares with the probe."""
    path = native.given(name)
    if path is not None:
        return path
    if mpi is None:
        mpi = find_mpi()
    if app is None and (prebuilt := native.prebuilt("probe", mpi)):
        return prebuilt
    sources = native_sources()
    folder = "" if app is None else f"apps/{app.folder}"
    extra = "" if app is None else app.packages
    packages = f"{DEBIAN_PACKAGES} {extra}".rstrip()
    folders = () if app is None else (folder, "apps/common", *app.libraries)
    chosen = () if app is None else app.options
    if app is not None and app.folder in BLAS_FOLDERS:
        chosen = (*chosen, blas_option())
    if app is not None and app.folder == "diffusion":
        chosen = (*chosen, scotch_option())
    key = build_key(sources, mpi, native.compiler_identity(name, packages), folders, chosen)
    options = (
        "-DELBOWROOM_TESTS=OFF",
        "-DELBOWROOM_LIBRARIES=OFF",
        "-DELBOWROOM_APPS=OFF",
        *chosen,
        f"-DMPI_CXX_COMPILER={mpi.compiler}",
    )
    called = "the probe" if app is None else name
    target = Target(
        name,
        sources,
        options,
        (name if app is None else f"{folder}/{name}",),
        packages,
        f"{called} for {mpi.name} (a minute or two, once)",
    )
    return native.kept(target, "probes" if app is None else "applications", key)


def build_key(
    sources: Path, mpi: Mpi, compiler: str, folders: Sequence[str] = (), options: Sequence[str] = ()
) -> str:
    """Hash of all a program is built from: sources (the probe's and `folders`), MPI, compiler, options."""
    files = [sources / "CMakeLists.txt", sources / "VERSION"]
    for folder in ("core", *folders):
        paths = sorted([*(sources / folder).rglob("*.[ch]pp"), *(sources / folder).glob("CMakeLists.txt")])
        files += [path for path in paths if "simulate" not in path.relative_to(sources).parts]
    # By these the probe records what its threads do.
    files += native.files_below(sources, ("lib/trace", "lib/clock", "include/elbowroom"), recursive=False)
    others = [mpi.kind, mpi.version, mpi.prefix, mpi.compiler, compiler, *options]
    return f"{mpi.kind}-{mpi.version}-{source_key(sources, files, others)}"
