"""The public names, written by tools/public_stub.py."""

from collections.abc import Callable as Callable
from collections.abc import Iterable as Iterable
from collections.abc import Sequence as Sequence
from elbowroom.accept.document import AcceptanceDocument as AcceptanceDocument
from elbowroom.accept.history import HistoryDocument as HistoryDocument
from elbowroom.advise.advice import Advice as Advice
from elbowroom.advise.verification import Compared as Compared
from elbowroom.advise.what_if import WhatIf as WhatIf
from elbowroom.broadcast.measured import BroadcastEntry as BroadcastEntry
from elbowroom.broadcast.measured import broadcast_figures as broadcast_figures
from elbowroom.broadcast.network import fit_broadcast_network as fit_broadcast_network
from elbowroom.broadcast.network import load_network as load_network
from elbowroom.experiments.plans import Overrides as Overrides
from elbowroom.experiments.plans import names as names
from elbowroom.experiments.plans import plans as plans
from elbowroom.explain.explanation import Explanation as Explanation
from elbowroom.frames import Frame as Frame
from elbowroom.frames import frame as frame
from elbowroom.launch.executables import simulate_factorization as simulate_factorization
from elbowroom.launch.nic import NicSettings as NicSettings
from elbowroom.launch.nic import run_behind_nic as run_behind_nic
from elbowroom.launch.recorder import Adapter as Adapter
from elbowroom.launch.recorder import Policy as Policy
from elbowroom.launch.recorder import TraceClock as TraceClock
from elbowroom.launch.trace_reader import Checked as Checked
from elbowroom.launch.trace_reader import Tell as Tell
from elbowroom.logs.comparison import TableComparison as TableComparison
from elbowroom.machine.doctor import DoctorLine as DoctorLine
from elbowroom.measure.prepared import Prepared as Prepared
from elbowroom.models.demand import Demand as Demand
from elbowroom.models.load import Direction as Direction
from elbowroom.models.load import LoadRow as LoadRow
from elbowroom.models.run_data import FitData as FitData
from elbowroom.profile.curve import ProfileCalibration as ProfileCalibration
from elbowroom.profile.curve import load_calibration as load_calibration
from elbowroom.results.stores import StoreFactor as StoreFactor
from elbowroom.schedule.measured import MeasuredMatrix as MeasuredMatrix
from elbowroom.studies.document import StudyDocument as StudyDocument
from elbowroom.studies.document import StudyPlan as StudyPlan
from elbowroom.trace.activity_figures import trace_figures as trace_figures
from elbowroom.trace.documents import Stat as Stat
from elbowroom.trace.documents import Sync as Sync
from elbowroom.trace.flushes import FlushCosts as FlushCosts
from elbowroom.trace.overhead import Overhead as Overhead
from elbowroom.trace.overhead import overhead_figures as overhead_figures
from elbowroom.trace.overlap.document import TraceOverlap as TraceOverlap
from elbowroom.verbs.advise import advise_gpu as advise_gpu
from elbowroom.verbs.advise import contention_maps as contention_maps
from elbowroom.verbs.advise import load_advice as load_advice
from elbowroom.verbs.advise import load_gpu_job as load_gpu_job
from elbowroom.verbs.advise import map_figures as map_figures
from elbowroom.verbs.broadcasts import simulate_broadcast as simulate_broadcast
from elbowroom.verbs.broadcasts import tune_broadcasts as tune_broadcasts
from elbowroom.verbs.bundles import BundleComparison as BundleComparison
from elbowroom.verbs.calibrate import Calibrated as Calibrated
from elbowroom.verbs.calibrate import resume_calibration as resume_calibration
from elbowroom.verbs.colocate import load_schedule as load_schedule
from elbowroom.verbs.colocate import matrix_figure as matrix_figure
from elbowroom.verbs.colocate import pair_applications as pair_applications
from elbowroom.verbs.colocate import schedule_jobs as schedule_jobs
from elbowroom.verbs.colocate import slurm_script as slurm_script
from elbowroom.verbs.colocate_measure import PlannedRuns as PlannedRuns
from elbowroom.verbs.colocate_predict import ForecastDocument as ForecastDocument
from elbowroom.verbs.compare import Changes as Changes
from elbowroom.verbs.diagnosis import diagnose as diagnose
from elbowroom.verbs.explain import explanation_figures as explanation_figures
from elbowroom.verbs.fit import evaluate as evaluate
from elbowroom.verbs.gpu_models import predict_cases as predict_cases
from elbowroom.verbs.gpu_models import read_cases as read_cases
from elbowroom.verbs.import_files import LoggedTables as LoggedTables
from elbowroom.verbs.joined_runs import JoinedRuns as JoinedRuns
from elbowroom.verbs.joined_runs import join_runs as join_runs
from elbowroom.verbs.machine import machine_from_run as machine_from_run
from elbowroom.verbs.machine import machine_names as machine_names
from elbowroom.verbs.machine import machine_text as machine_text
from elbowroom.verbs.model_file import Evaluation as Evaluation
from elbowroom.verbs.model_file import Model as Model
from elbowroom.verbs.model_file import advise as advise
from elbowroom.verbs.model_file import load_job as load_job
from elbowroom.verbs.model_file import load_model as load_model
from elbowroom.verbs.model_file import predict as predict
from elbowroom.verbs.model_file import read_load as read_load
from elbowroom.verbs.model_file import save_panels as save_panels
from elbowroom.verbs.predict_step import best_split as best_split
from elbowroom.verbs.predict_step import overlap as overlap
from elbowroom.verbs.predict_step import overlap_figure as overlap_figure
from elbowroom.verbs.predict_step import overlap_predicted as overlap_predicted
from elbowroom.verbs.predict_step import overlap_table as overlap_table
from elbowroom.verbs.profile import Profiled as Profiled
from elbowroom.verbs.profile import ShownProfile as ShownProfile
from elbowroom.verbs.run_folder import Run as Run
from elbowroom.verbs.run_folder import open as open
from elbowroom.verbs.run_folder import step_table as step_table
from elbowroom.verbs.saving import save as save
from elbowroom.verbs.schema import schema as schema
from elbowroom.verbs.schema import schema_names as schema_names
from elbowroom.verbs.show import ListedRun as ListedRun
from elbowroom.verbs.simulate_memory import simulated_figure as simulated_figure
from elbowroom.verbs.simulate_memory import simulated_node as simulated_node
from elbowroom.verbs.study import study_names as study_names
from elbowroom.verbs.tour import Tour as Tour
from elbowroom.verbs.trace import MergeDocument as MergeDocument
from elbowroom.verbs.trace import TraceActivity as TraceActivity
from elbowroom.verbs.trace_overlap import compare_trace_overlaps as compare_trace_overlaps
from elbowroom.verbs.trace_record import RecordDocument as RecordDocument
from elbowroom.virtual.definition import Definition as Definition
from elbowroom.virtual.requests import Pattern as Pattern
from elbowroom.virtual.simulated import Simulated as Simulated
from pathlib import Path as Path
from typing import IO as IO

__version__: str

def accept(
    *,
    virtual: int | None = None,
    plant: Sequence[str] = (),
    kinds: int = 1,
    seed: int = 1,
    source: Path | str | None = None,
    node: bool = False,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: tuple[str, ...] = (),
    hostfile: str | None = None,
    budget: float = 300.0,
    by_feature: str | None = None,
    resume: Path | str | None = None,
    size: int = 1048576,
    working_set: int | None = None,
    shard: int = 256,
    patience: float = 60.0,
    baseline: Path | str | None = None,
    out: Sequence[str] = (),
    dry_run: bool = False,
    tell: Callable[[str], object] = ...,
) -> AcceptanceDocument:
    """Measures the nodes of the allocation, or this `node`; examines a virtual site of `virtual` nodes
    with the faults `plant`; or judges the logs in `source`.

    UsageError where there is no allocation, a log is damaged or holds too few nodes, and for a baseline
    of another site; MachineError where too few nodes can be reached.
    """

def accept_history(
    folder: Path | str,
    *,
    of: str | None = None,
) -> HistoryDocument:
    """Reads all runs below `folder`. UsageError where there are none, or a table is damaged."""

def bench_broadcasts(
    sizes: tuple[int, ...] = ...,
    trees: tuple[str, ...] = ...,
    *,
    ranks: int | None = None,
    recipients: tuple[int, ...] | None = None,
    segment: int | None = None,
    repeat: int = 15,
    rising: bool = False,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: tuple[str, ...] = (),
    hostfile: str | None = None,
    out: Path | str | None = None,
    dry_run: bool = False,
) -> list[BroadcastEntry]:
    """Sends data from rank 0 to others by each tree, and by MPI_Bcast, MPI_Ibcast and a loop of sends,
    all in turns: one entry for each size (bytes), number of recipients and tree. `ranks`: default one for
    each core, at least 2; `recipients`: how many of them receive (default: all others). `segment`: bytes,
    default whole messages. `rising`: priorities rise with the rank. UsageError for what cannot be
    measured, MachineError where the program cannot be built or dies.
    """

def calibrate(
    *,
    points: int = 24,
    half_width: float = 0.03,
    out: Path | str | None = None,
    run: str | None = None,
    plan: str = "model",
    machine: str | None = None,
    noise: float | None = None,
    kernels: tuple[str, ...] | None = None,
    sizes: tuple[int, ...] | None = None,
    repeat: int | None = None,
    settings: tuple[str, ...] = (),
    overrides: Overrides | None = None,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: tuple[str, ...] = (),
    hostfile: str | None = None,
    seed: int | None = None,
    patience: float | None = None,
    report: bool = True,
    dry_run: bool = False,
    seconds: float = 0.0,
    command: Sequence[str] = (),
    tell: Callable[[str], object] = ...,
) -> Calibrated:
    """Measures only what teaches most of `plan`, and fits every model to it.

    Ends after `points` points (a placement with a number of computing cores each), or as soon as nine of
    ten predictions have a 90 % interval of at most the relative `half_width`, or when no further point
    fits into `seconds` (0: no limit). `run` names the new run folder, `out` the model's file (default:
    models/NAME.json in the run folder); the rest as of `elbowroom.run`.
    """

def calibrate_for_jobs(
    run: Run | Path | str,
    out: Path | str | None = None,
    *,
    repeat: int = 5,
    mpi: str | None = None,
    dry_run: bool = False,
    seconds: float = 0.1,
    tell: Callable[[str], object] = ...,
) -> Model:
    """Measures what the cores of this machine get from memory and what plain stores move over its bus,
    and fits its model to that and to a run of it.

    `out`: default as `fit`. UsageError for a run of another machine or of a virtual one, MachineError
    where the probe fails.
    """

def calibrate_network(
    sizes: Sequence[int] = ...,
    *,
    ranks: int | None = None,
    nic: NicSettings | float | str | None = None,
    repeat: int = 5,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: tuple[str, ...] = (),
    hostfile: str | None = None,
    out: Path | str | None = None,
    dry_run: bool = False,
    seconds: float = 0.1,
) -> ProfileCalibration:
    """Measures 1, 2, … senders of a node at once, to another node and inside the node, over sizes (B).

    `ranks`: of all nodes together (default: one for each core of two nodes); `nic`: an emulated one
    (docs/reference/nic.md), else all ranks of a host are one node's. `seconds` of each of the `repeat`
    measurements of a case. UsageError for what cannot be measured, MachineError where it fails.
    """

def check_trace(
    directory: Path | str,
) -> Checked:
    """Whether a trace is whole and its times can be trusted: events kept and lost, messages that arrive
    before they left or have ends of different sizes, ranks that are missing, damage.
    """

def compare(
    a: Run | Path | str,
    *others: Run | Path | str,
    at_least: float = 0.01,
) -> Changes | TableComparison | BundleComparison:
    """Changes from run `a` to each other run of all values both have; those below the share `at_least`
    are never significant; of two folders of imported logs those of their tables, of two bundles of a
    study those of their runs and verdicts. UsageError where a run has nothing in common with `a`.
    """

def doctor(
    *,
    mpi: str | None = None,
) -> list[DoctorLine]:
    """Each thing that a measurement depends on: ok, warn or n/a, with a hint.

    UsageError where the MPI that is named does not exist.
    """

def dry_run(
    plan: str | None = None,
    *,
    out: str | None = None,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: tuple[str, ...] = (),
    hostfile: str | None = None,
    machine: str | None = None,
    noise: float | None = None,
    kernels: tuple[str, ...] | None = None,
    comp_cores: tuple[int, ...] | None = None,
    comm_core: int | None = None,
    comp_node: int | None = None,
    comm_node: int | None = None,
    sizes: tuple[int, ...] | None = None,
    nodes: str | None = None,
    repeat: int | None = None,
    starts: int | None = None,
    budget: float | None = None,
    quick: bool = False,
    settings: tuple[str, ...] = (),
    overrides: Overrides | None = None,
    seed: int | None = None,
    reverse: bool = False,
    patience: float | None = None,
    trace: bool = False,
    report: bool = True,
    command: Sequence[str] = (),
    tell: Callable[[str], object] = ...,
) -> Prepared:
    """What `run` would do: points, notes, command lines and the time it would take. Measures and builds
    nothing.
    """

def explain(
    *runs: Run | Path | str,
    out: Path | str | None = None,
    kernel: str | None = None,
    cores: int | None = None,
    size: int | None = None,
) -> Explanation:
    """How much of the loss comes from frequency, caches, memory controller, link, polling, runtime
    system and scheduling, by contrast between the points of runs of one machine (docs/guide/explain.md).

    Without `kernel`, `cores` and `size` (bytes), TRIAD at the most cores and the largest message is
    explained, and every point split. UsageError where the runs are of different machines, or hold nothing
    to explain.
    """

def fit(
    run: Run | Path | str | Sequence[Run | Path | str],
    out: Path | str | None = None,
    *,
    kernel: str | None = None,
    size: int | None = None,
    sms: int | None = None,
    computing: Callable[[FitData], Sequence[LoadRow]] | None = None,
    store_factor: StoreFactor | None = None,
) -> Model:
    """Fits every model that a run allows, or several of one machine together, and writes M.json (default:
    models/NAME.json in the folder of the first run). `computing`: more measured loads, for that run's
    data; `sms`: multiprocessors of the accelerator, where runs of one do not say it; `store_factor`:
    bytes on the memory bus for a byte of a plain store, if it was measured apart from the runs.

    UsageError where none can be fitted, the runs hold one point only, or are of different machines.
    """

def forecast_colocation(
    profiles: Sequence[str | Path],
    *,
    half: bool = False,
    curve: str | Path | None = None,
    model: Model | str | Path | None = None,
    memory: Sequence[str] = (),
    cache: Sequence[str] = (),
    llc: int | str | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    offsets: int = 32,
) -> ForecastDocument:
    """Replays the jobs of these profiles on shared NICs, pair by pair; nothing is run.

    `curve`: a file of `nic measure`; without it the NIC is the one that `network_intervals`
    assumes. `half`: each job has half of its ranks on a node, on twice the nodes, and is compared with
    itself on all. `model`: a FLOW model of the machine, for memory and last-level cache; `memory`
    (`job=6.2GB/s`) and `cache` (`job=20MiB@30GB/s`) state what counters do not say, `llc` the size of the
    last-level cache. Without a model memory and cache are those of `colocate demand`, if all profiles
    have one. UsageError for what is no profile, and for a model of another machine.
    """

def import_curves(
    files: Sequence[str | Path] | str | Path,
    out: Path | str,
    *,
    kernel: str | None = None,
    size: int | None = None,
    command: Sequence[str] = (),
) -> Run | LoggedTables:
    """Makes a run folder of curves measured with something else, or of the tables of logs; `kernel` and
    `size` (bytes) say what a file of curves does not.
    """

def list_runs(
    folder: Path | str = "runs",
) -> list[ListedRun]:
    """The runs in a folder, oldest first, unreadable ones at the end; a run folder lists itself.

    Raises UsageError where there is no such folder.
    """

def measure_demand(
    profile: Path | str,
    words: tuple[str, ...] = (),
    *,
    load_cores: tuple[int, ...] | None = None,
    metric: str | None = None,
    repetitions: int = 5,
    budget: float | None = None,
    patience: float | None = None,
    dry_run: bool = False,
    tell: Callable[[str], object] = ...,
) -> Demand:
    """Measures the demand of a command, and writes it into the profile of the same program.

    UsageError for what is no profile, MachineError where the program or the load fails.
    """

def measure_pairs(
    apps: Path | str,
    out: Path | str | None = None,
    *,
    repetitions: int = 3,
    resume: bool = False,
    dry_run: bool = False,
    timeout: float | None = None,
    seed: int = 1,
    curve: Path | str | None = None,
    tell: Callable[[str], object] = ...,
) -> MeasuredMatrix:
    """Runs all applications of a file alone, on half of the cores, and in pairs, into the folder `out`;
    the matrix, which is written there too (matrix.csv, half.csv, matrix.json).

    `timeout`: seconds that a run, or a pair, may take; `resume`: goes on with a measurement that was
    stopped; `curve`: the NIC of the forecast, a file of `nic measure`. `tell` gets lines of
    progress. UsageError for applications that cannot be measured, MachineError where one fails or prints
    no time. What was measured before an error or an interrupt is kept.
    """

def merge_trace(
    directory: Path | str,
    out: Path | str,
    *,
    format: str | None = None,
    begin_s: float | None = None,
    end_s: float | None = None,
    categories: tuple[str, ...] = (),
    tell: Tell | None = None,
) -> MergeDocument:
    """Merges the trace of all ranks into `out`, in the format `format` (store/exporters) or that of its
    ending; `tell` hears how much of how much is done. A timeline may show a part: from `begin_s` to
    `end_s`, seconds since the start, and some `categories`; intervals that reach out of it are cut at its
    bounds. What cannot be finished leaves no file.
    """

def plan_colocation(
    apps: Path | str,
    out: Path | str | None = None,
    *,
    repetitions: int = 3,
    resume: bool = False,
    timeout: float | None = None,
    seed: int = 1,
    curve: Path | str | None = None,
    tell: Callable[[str], object] = ...,
) -> PlannedRuns:
    """What would be run; nothing is."""

def predict_changes(
    directory: Path | str,
    model: Model | Path | str | None = None,
    *,
    fewer_cores: int | None = None,
    cores: int | None = None,
    comp_node: int = 0,
    comm_node: int = 0,
    communication_threads: bool = False,
    curve: Path | str | None = None,
) -> WhatIf:
    """How the time of a profiled program changes with `fewer_cores` computing cores less (default 1),
    with its messages' data near the NIC, and without overlap; each by itself.

    `cores`, `comp_node`, `comm_node`: as it ran (default: a core for each rank of a node). `model`: of
    that machine, default the newest in runs/. UsageError for a model of another machine, or cores that
    it lacks.
    """

def record_profile(
    command: Sequence[str] = (),
    out: Path | str = "profile",
    *,
    records: int = 1048576,
    mpi: str | None = None,
    nic: NicSettings | float | str | None = None,
    dry_run: bool = False,
    stdout: IO[bytes] | int | None = None,
) -> Profiled:
    """Runs `command` with the profiler preloaded, into a new folder.

    `records`: how many each process keeps, the latest; `mpi` where the command's cannot be told; `nic`:
    an emulated one to run behind. What the program prints and its exit code stay its own. UsageError for
    what cannot be profiled, MachineError where the command cannot be started.
    """

def record_trace(
    command: Sequence[str] = (),
    out: Path | str = "trace",
    *,
    categories: Sequence[str] | None = None,
    without: Sequence[str] = (),
    buffer: int | str | None = None,
    policy: Policy = "stop",
    core: int | None = None,
    sync_seconds: float | None = None,
    clock: TraceClock = "best",
    adapters: Sequence[Adapter] | None = None,
    mpi: str | None = None,
    dry_run: bool = False,
    stdout: IO[bytes] | int | None = None,
) -> RecordDocument:
    """Runs `command` with the recorder preloaded, and reads what it recorded.

    `categories` (default: all), types of events `without` which it records, `buffer` bytes of events for
    each thread (default: what memory allows, 1 to 32 MiB), `policy` where that is full; `core` is the
    draining thread's; clocks are compared every `sync_seconds` (default: 10); `clock` `monotonic` stamps
    events with CLOCK_MONOTONIC and compares clocks once, at the begin; `adapters` by default those that
    fit; `mpi` where the command's cannot be told. Where no process recorded anything there are no jobs,
    and a note says why that may be. UsageError for what cannot be asked, MachineError where the command
    cannot be started.
    """

def resume(
    resume: Path | str,
    *,
    retry_failed: bool = False,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: tuple[str, ...] = (),
    hostfile: str | None = None,
    budget: float | None = None,
    patience: float | None = None,
    report: bool = True,
    tell: Callable[[str], object] = ...,
) -> Run:
    """Measures a plan into a new run folder; see `elbowroom run --help` for the options.

    `budget` (seconds) limits the time from this call to the report, as the plan's `budget` does: the
    points that tell most come first, and `Run.notes` says what there was no time for. `overrides` has all
    changes of the plan in one.

    `trace`: what the probe's threads do is recorded into OUT.trace/1 (and 2, ... where the probe is
    started again), traces as `elbowroom trace` reads them; some ten ns for each chunk of a millisecond.

    `machine`: a virtual one answers instead (published name or file, docs/guide/virtual.md), with `noise`
    as the relative standard deviation of its values, and `seed` for that and for the order of points.

    `resume`: measures what an interrupted run still lacks, within `budget` seconds from now; without it,
    in what is left of the run's own budget.
    """

def run(
    plan: str | None = None,
    *,
    out: str | None = None,
    resume: Path | str | None = None,
    retry_failed: bool = False,
    dry_run: bool = False,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: tuple[str, ...] = (),
    hostfile: str | None = None,
    machine: str | None = None,
    noise: float | None = None,
    kernels: tuple[str, ...] | None = None,
    comp_cores: tuple[int, ...] | None = None,
    comm_core: int | None = None,
    comp_node: int | None = None,
    comm_node: int | None = None,
    sizes: tuple[int, ...] | None = None,
    nodes: str | None = None,
    repeat: int | None = None,
    starts: int | None = None,
    budget: float | None = None,
    quick: bool = False,
    settings: tuple[str, ...] = (),
    overrides: Overrides | None = None,
    seed: int | None = None,
    reverse: bool = False,
    patience: float | None = None,
    trace: bool = False,
    report: bool = True,
    command: Sequence[str] = (),
    tell: Callable[[str], object] = ...,
) -> Run:
    """Measures a plan into a new run folder; see `elbowroom run --help` for the options.

    `budget` (seconds) limits the time from this call to the report, as the plan's `budget` does: the
    points that tell most come first, and `Run.notes` says what there was no time for. `overrides` has all
    changes of the plan in one.

    `trace`: what the probe's threads do is recorded into OUT.trace/1 (and 2, ... where the probe is
    started again), traces as `elbowroom trace` reads them; some ten ns for each chunk of a millisecond.

    `machine`: a virtual one answers instead (published name or file, docs/guide/virtual.md), with `noise`
    as the relative standard deviation of its values, and `seed` for that and for the order of points.

    `resume`: measures what an interrupted run still lacks, within `budget` seconds from now; without it,
    in what is left of the run's own budget.
    """

def show_profile(
    directory: Path | str,
    curve: Path | str | None = None,
    *,
    out: Path | str | None = None,
    together: Path | str | None = None,
) -> ShownProfile:
    """Who was on the network, how many at once, and what else the profile in this folder says. `curve`: a
    file of `nic measure`; without it n senders share the highest bandwidth that the profile shows.
    `together`: the profile of a job that ran on the same nodes at the same time.

    UsageError where it holds no profile, a damaged or newer one, or those of two jobs.
    """

def simulate(
    machine: str,
    *,
    cores: Sequence[int] | str | None = None,
    comp_node: int = 0,
    comm_node: int = 0,
    kernel: Pattern = "nt",
    intensity: float = 0.0,
    direction: Direction = "receive",
    sizes: Sequence[int | None] | str = (),
    comm_threads: int = 1,
    far_thread: bool = False,
    copy: float | None = None,
    settings: Iterable[tuple[str, str]] = (),
    seed: int = 1,
    out: Path | str | None = None,
) -> Simulated:
    """Both sides alone and together for each number of `cores` of the first socket (default: all) and
    each message size in bytes (none, or None: one endless message).

    `intensity` in flop/B, `copy` the MB/s that an accelerator would write to `comp_node` alone,
    `far_thread`: the communication threads are not on the NIC's socket. UsageError for what the machine
    has not; MachineError when the simulator cannot be built.
    """

def study(
    paper: str | None = None,
    *,
    out: str | None = None,
    resume: str | None = None,
    bundle: Path | str | None = None,
    dry_run: bool = False,
    only: tuple[str, ...] = (),
    quick: bool = False,
    repeat: int | None = None,
    starts: int | None = None,
    turbo: str | None = None,
    governor: str | None = None,
    budget: float | None = None,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: tuple[str, ...] = (),
    hostfile: str | None = None,
    machine: str | None = None,
    noise: float | None = None,
    seed: int | None = None,
    patience: float | None = None,
    tell: Callable[[str], object] = ...,
) -> StudyDocument:
    """Measures all runs behind a paper's figures into one folder, judges its statements, and writes
    report.html and results.json there.

    A folder with the same study is continued: what is measured is kept. `resume` names it in place of
    `paper`. `only`: labels of the figures and tables to make (`Fig. 4a`). `quick`: few repetitions, short
    windows and fewer points; `budget`: seconds for all runs together; `starts`: each run starts its
    program so often; `turbo`, `governor`: set during runs about frequencies.
    `bundle`: a zip file of all that was measured and what it was measured with, which `compare` takes.
    UsageError for an unknown paper, and for a folder of other settings or of another machine.
    """

def study_plan(
    paper: str | None = None,
    *,
    out: str | None = None,
    bundle: Path | str | None = None,
    only: tuple[str, ...] = (),
    quick: bool = False,
    repeat: int | None = None,
    starts: int | None = None,
    turbo: str | None = None,
    governor: str | None = None,
    budget: float | None = None,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: tuple[str, ...] = (),
    hostfile: str | None = None,
    machine: str | None = None,
    noise: float | None = None,
    seed: int | None = None,
    patience: float | None = None,
    tell: Callable[[str], object] = ...,
) -> StudyPlan:
    """What a study would measure here and how long that takes, at most `budget` seconds; for each figure
    and table whether this machine can show and judge it, with the reason if it cannot. Measures nothing.
    """

def tour(
    *,
    out: Path | str | None = None,
) -> Tour:
    """Runs the steps in a new folder `out`, and returns what each printed.

    UsageError where the folder exists already; MachineError where none can be made, or a step fails.
    """

def trace_activity(
    directory: Path | str,
    bins: int = 100,
    *,
    figure: Path | str | None = None,
    tables: Path | str | None = None,
    tell: Tell | None = None,
) -> TraceActivity:
    """Tasks submitted, ready and running, states of workers, utilisation and imbalance in `bins` of equal
    length; durations of messages. `tables`: the folder for tasks.parquet, communications.parquet
    and buffers.parquet.
    """

def trace_flushes(
    command: Sequence[str] = (),
    *,
    repeat: int = 10,
    metric: str = "wall",
    rate: bool = False,
    adapters: Sequence[Adapter] | None = None,
    mpi: str | None = None,
    seed: int = 0,
    out: Path | str | None = None,
    dry_run: bool = False,
    tell: Callable[[str], object] = ...,
) -> FlushCosts:
    """Runs `command` `repeat` times recorded without a flush and as often with flushes, in turns, and
    finds what each run loses and what its flushes interrupted (thesis, Figs. 3.2 and 3.3).

    `metric`: the wall time, or a regular expression of a number that the command prints; with `rate` more
    of it is better. The first run is not counted and shows how many events the fullest buffer needs.
    UsageError for what cannot be asked; MachineError where the command fails, prints no such number or
    records nothing.
    """

def trace_overhead(
    command: Sequence[str] = (),
    *,
    repeat: int = 10,
    categories: str | None = None,
    without: str | None = None,
    threads: Sequence[int] | None = None,
    metric: str = "wall",
    rate: bool = False,
    limit: float = 0.05,
    buffer: int | str = 4194304,
    adapters: Sequence[Adapter] | None = None,
    mpi: str | None = None,
    seed: int = 0,
    out: Path | str | None = None,
    dry_run: bool = False,
    tell: Callable[[str], object] = ...,
) -> Overhead:
    """Runs `command` without a recorder and with it, in turns, and says whether its trace can be trusted.

    `categories`: sets of them, `mpi;mpi,task`; by default each that the program has by itself. `without`:
    everything but these types, `submit;ready,push`, or each of the four most `frequent` ones. `threads`:
    numbers of threads to compare, told by OMP_NUM_THREADS and STARPU_NCPU, or where `{threads}` stands in
    the command. `metric`: the wall time, or a regular expression whose group (or whole match) is a number
    in what the command prints; with `rate` more of it is better. `limit`: what recording may cost (0.05:
    5 %). The first run, which is traced and not counted, warms up and tells the categories.
    UsageError for what cannot be asked; MachineError where the command fails or prints no such number.
    """

def trace_overlap(
    files: Sequence[str | Path] | str | Path,
    *,
    computation: tuple[str, ...] = (),
    communication: tuple[str, ...] = (),
    step: tuple[str, ...] = (),
    between_calls: bool = False,
    out: Path | str | None = None,
) -> TraceOverlap:
    """The overlap of one trace, in one file, or in one for each rank. Names that match a regular
    expression in `computation` or `communication` are of that side, whatever the trace says, and those in
    `step` are steps. `between_calls`: the time between two communications of a thread is computation, for
    traces that record MPI only.

    UsageError for what is no trace, is damaged at its begin, has no communication or no computation, or
    is of several runs; MachineError if a reader fails. What ends early is analysed up to there, with a
    doubt.
    """

def trace_stat(
    directory: Path | str,
    bins: int = 100,
    *,
    figure: Path | str | None = None,
) -> Stat:
    """Events by type and over time (`bins` of equal length), by thread, and what recording took by
    rank.
    """

def trace_sync(
    directory: Path | str,
    *,
    report: Path | str | None = None,
) -> Sync:
    """The clocks of all ranks: comparisons, offsets, drifts and error bars over time, which `report` has
    as one HTML page.
    """

def verify_advice(
    advice: Advice,
    model: Model | Path | str,
    *,
    repetitions: int = 9,
    run: Path | str | None = None,
    resume: Path | str | None = None,
    machine: str | None = None,
    noise: float | None = None,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: tuple[str, ...] = (),
    hostfile: str | None = None,
    seed: int | None = None,
    patience: float | None = None,
    command: Sequence[str] = (),
    dry_run: bool = False,
    tell: Callable[[str], object] = ...,
) -> Compared:
    """Measures the present and the advised configuration, interleaved, in a new folder `run` (or goes on
    with `resume`), and says what was gained beside what was predicted; where nothing is advised, the best
    other prediction takes the advised one's place.

    The probe measures both sides' bandwidths, of which the steps follow, or the job's own command is
    timed. `model`: that of the advice. `machine`: a virtual one answers, as of `elbowroom.run`.
    """

def virtual_machine(
    spec: str,
) -> Definition:
    """What `--machine SPEC` stands for: NAME, FILE.toml or FILE.xml, `:credits` or `:published` after it.

    UsageError for unknown names, with near ones, and for files that define no machine.
    """
