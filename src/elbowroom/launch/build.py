"""The native programs and libraries: what each is built of and with, on first use, and kept (`native`).

The probe, applications and the recorder's libraries are built for an MPI and once for each; the simulators
and the reader of traces need none.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
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


TASKFLOW_FOLDERS = ("lib/broadcast", "lib/taskflow")
"""The libraries of programs that are task graphs."""

APPLICATIONS = {
    "diffusion": AppBuild("diffusion", ("-DELBOWROOM_APPS=ON",)),
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
"""The same of the simulators."""

SIMGRID_PACKAGE = "libsimgrid-dev"
BROADCAST_PACKAGES = f"{SIMULATOR_PACKAGES} pkg-config libcli11-dev {SIMGRID_PACKAGE}"
"""The same of the simulator of broadcasts."""

BENCH_PACKAGES = f"{SIMULATOR_PACKAGES} pkg-config"
"""The same of the benchmark of broadcasts."""

GPU_PACKAGES = f"{SIMULATOR_PACKAGES} pkg-config libhwloc-dev libhwy-dev libfmt-dev"
"""The same of the program that measures an accelerator."""

READER_PACKAGES = f"{SIMULATOR_PACKAGES} pkg-config libcli11-dev libprotozero-dev libotf2-trace-dev"
"""The same of the reader of traces."""

EVENTS_PACKAGES = "g++ cmake ninja-build pkg-config libsimdjson-dev libisal-dev"
"""The same of the reader of traces in JSON."""

LIBRARIES_PACKAGES = f"{SIMULATOR_PACKAGES} pkg-config"
"""The same of what is preloaded into traced programs, but an MPI, StarPU and OMPT."""

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


def simulator() -> Path:
    """The simulator of single requests, as `probe`, for no MPI; ELBOWROOM_SIMULATOR names one."""
    return _without_mpi("simulator", "core/simulate", ("core/simulate",), SIMULATOR_PACKAGES, recursive=False)


def clock_simulator() -> Path:
    """The simulator of clocks (docs/reference/clock.md); ELBOWROOM_CLOCK_SIMULATOR names one."""
    folders = ("lib/clock", "include", "core/base")
    return _without_mpi("clock-simulator", "lib/clock", folders, SIMULATOR_PACKAGES)


def broadcast_simulator() -> Path:
    """The simulator of broadcasts (docs/reference/broadcast.md); ELBOWROOM_BROADCAST_SIMULATOR names one.
    MachineError where it must be built and SimGrid is not installed.
    """
    _check_simgrid("broadcast-simulator")
    return _without_mpi(
        "broadcast-simulator", "lib/broadcast", ("lib/broadcast", "include"), BROADCAST_PACKAGES
    )


def has_simgrid(name: str = "broadcast-simulator") -> bool:
    """Whether a simulator of this name is given, or SimGrid is installed."""
    return native.given(name) is not None or bool(starpu.installed("simgrid"))


def _check_simgrid(name: str) -> None:
    if not has_simgrid(name):
        raise MachineError(
            f"is not installed, and the {name} needs it",
            field="simgrid",
            hint=f"as root: apt-get install {SIMGRID_PACKAGE}",
        )


def broadcast_costs() -> Path:
    """The cost model of broadcasts as a program; ELBOWROOM_BROADCAST_COSTS names one."""
    return _without_mpi("broadcast-costs", "lib/broadcast", ("lib/broadcast", "include"), SIMULATOR_PACKAGES)


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


def gpu_bench() -> Path:
    """The program that measures copies and kernels of an accelerator (docs/reference/gpu-bench.md), for no
    MPI; ELBOWROOM_GPU_BENCH names one. No CUDA is needed to build it.
    """
    folders = ("apps/gpu", "lib/gpu", "core/base", "core/kernels", "core/machine")
    return _without_mpi("gpu-bench", "apps/gpu", folders, GPU_PACKAGES)


def taskflow_simulator() -> Path:
    """The simulator of task graphs; ELBOWROOM_TASKFLOW_SIMULATOR names one."""
    _check_simgrid("taskflow-simulator")
    folders = ("lib/taskflow", "lib/broadcast", "include")
    return _without_mpi("taskflow-simulator", "lib/taskflow", folders, BROADCAST_PACKAGES)


def broadcast_bench(mpi: Mpi | None = None) -> Path:
    """The program that measures broadcasts over MPI (docs/reference/broadcast.md), built for `mpi` (default:
    the embedded one); ELBOWROOM_BROADCAST_BENCH names one that was built for the same.
    """
    folders = ("lib/broadcast", "lib/clock", "include", "core/base")
    return _bench("broadcast-bench", folders, ("-DELBOWROOM_MPI=ON",), mpi)


def network_bench(mpi: Mpi | None = None) -> Path:
    """The program that measures what n senders of a node get together (`elbowroom profile calibrate`), built
    like the benchmark of broadcasts; ELBOWROOM_NETWORK_BENCH names one.
    """
    return _bench("network-bench", ("lib/profile/bench",), (), mpi)


def _bench(name: str, folders: Sequence[str], options: tuple[str, ...], mpi: Mpi | None) -> Path:
    """A program over MPI of the first of `folders`, by themselves a build."""
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


def trace_reader() -> Path:
    """The program that checks, counts and merges traces (docs/guide/trace.md), built like the simulator.

    ELBOWROOM_TRACE_READER names one that was built already.
    """
    return _without_mpi("trace-reader", "lib/trace/merge", TRACE_FOLDERS, READER_PACKAGES)


def json_events() -> Path:
    """The program that reads large traces in JSON; ELBOWROOM_JSON_EVENTS names one."""
    return _without_mpi("json-events", "lib/events", ("lib/events",), EVENTS_PACKAGES)


def trace_libraries(mpi: Mpi | None = None) -> Path:
    """The folder with the libraries that are preloaded into a traced or profiled program.

    These are libelbow_trace.so and libelbow_clock.so, also by their sonames; for an `mpi`
    libelbow_trace_mpi.so and libelbow_profile_mpi.so; and libelbow_trace_starpu.so and
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
    compiler = native.compiler_identity("libraries of the recorder", LIBRARIES_PACKAGES)
    versions = [f"{module} {starpu.installed(module)}" for module in STARPU_MODULES]
    others = [compiler, *versions, *map(str, omp_tools())]
    options: tuple[str, ...] = ()
    if mpi is not None:
        others += [mpi.kind, mpi.version, mpi.prefix, mpi.compiler]
        options = (f"-DMPI_C_COMPILER={_c_wrapper(mpi)}",)
    files = native.files_below(sources, (*TRACE_FOLDERS, "lib/pmpi", "lib/profile", "lib/preload"))
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
        LIBRARIES_PACKAGES,
        f"the recorder's libraries{f' for {mpi.name}' if mpi is not None else ''} (half a minute, once)",
        called="all",
    )
    return native.kept(target, "traces", f"{key}{source_key(sources, files, others)}").parent


def omp_tools() -> list[Path]:
    """The headers omp-tools.h that are installed: OMPT's, which GCC has not."""
    places = ("/usr/include", "/usr/lib/llvm-*/include/openmp", "/usr/lib/llvm-*/lib/clang/*/include")
    return sorted(path for place in places for path in Path("/").glob(f"{place[1:]}/omp-tools.h"))


def _c_wrapper(mpi: Mpi) -> Path:
    """The compiler of C beside that of C++."""
    wrapper = Path(mpi.compiler)
    return wrapper.with_name(wrapper.name.replace("mpicxx", "mpicc"))


def _without_mpi(
    name: str, folder: str, folders: Sequence[str], packages: str, *, recursive: bool = True
) -> Path:
    """A program that needs no MPI, built in `folder` of the sources and made of all in `folders`."""
    path = native.given(name)
    if path is not None:
        return path
    sources = native_sources()
    compiler = native.compiler_identity(name, packages)
    files = native.files_below(sources, folders, recursive=recursive)
    key = source_key(sources, files, [compiler])
    target = Target(name, sources / folder, (), (name,), packages, f"the {name} (some seconds, once)")
    return native.kept(target, f"{name}s", key)


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
