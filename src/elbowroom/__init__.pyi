"""The public names, written by tools/public_stub.py."""

from collections.abc import Callable as Callable
from collections.abc import Iterable as Iterable
from collections.abc import Sequence as Sequence
from elbowroom.advise.advice import Advice as Advice
from elbowroom.advise.verification import Compared as Compared
from elbowroom.api.flush_cost import save_flush_figure as save_flush_figure
from elbowroom.api.flush_cost import trace_flushes as trace_flushes
from elbowroom.api.network_calibration import calibrate_network as calibrate_network
from elbowroom.api.network_calibration import load_calibration as load_calibration
from elbowroom.api.network_calibration import save_calibration as save_calibration
from elbowroom.api.profiles import record_profile as record_profile
from elbowroom.api.profiles import save_profile as save_profile
from elbowroom.api.profiles import show_profile as show_profile
from elbowroom.api.recording_cost import overhead_figures as overhead_figures
from elbowroom.api.recording_cost import save_overhead_figure as save_overhead_figure
from elbowroom.api.recording_cost import trace_overhead as trace_overhead
from elbowroom.api.trace_overlaps import compare_trace_overlaps as compare_trace_overlaps
from elbowroom.api.trace_overlaps import save_trace_overlap as save_trace_overlap
from elbowroom.api.trace_overlaps import trace_overlap as trace_overlap
from elbowroom.api.trace_recorder import record_trace as record_trace
from elbowroom.api.traces import check_trace as check_trace
from elbowroom.api.traces import merge_trace as merge_trace
from elbowroom.api.traces import save_sync_report as save_sync_report
from elbowroom.api.traces import save_trace_figure as save_trace_figure
from elbowroom.api.traces import trace_activity as trace_activity
from elbowroom.api.traces import trace_dag as trace_dag
from elbowroom.api.traces import trace_figures as trace_figures
from elbowroom.api.traces import trace_stat as trace_stat
from elbowroom.api.traces import trace_sync as trace_sync
from elbowroom.api.what_if import predict_changes as predict_changes
from elbowroom.broadcast.measured import BroadcastEntry as BroadcastEntry
from elbowroom.broadcast.measured import broadcast_figures as broadcast_figures
from elbowroom.broadcast.network import fit_broadcast_network as fit_broadcast_network
from elbowroom.broadcast.network import load_network as load_network
from elbowroom.experiments.plans import Overrides as Overrides
from elbowroom.experiments.plans import names as names
from elbowroom.experiments.plans import plans as plans
from elbowroom.explain.explanation import Explanation as Explanation
from elbowroom.launch.nic import NicSettings as NicSettings
from elbowroom.launch.nic import run_behind_nic as run_behind_nic
from elbowroom.launch.simulator import simulate_factorization as simulate_factorization
from elbowroom.machine.doctor import Diagnosis as Diagnosis
from elbowroom.measure.prepared import Prepared as Prepared
from elbowroom.models.load import Direction as Direction
from elbowroom.models.load import LoadRow as LoadRow
from elbowroom.models.run_data import FitData as FitData
from elbowroom.results.comparison import Change as Change
from elbowroom.results.stores import StoreFactor as StoreFactor
from elbowroom.schedule.measured import MeasuredMatrix as MeasuredMatrix
from elbowroom.studies.document import StudyDocument as StudyDocument
from elbowroom.studies.document import StudyPlan as StudyPlan
from elbowroom.verbs.advise import advise_gpu as advise_gpu
from elbowroom.verbs.advise import contention_maps as contention_maps
from elbowroom.verbs.advise import load_advice as load_advice
from elbowroom.verbs.advise import load_gpu_job as load_gpu_job
from elbowroom.verbs.advise import map_figures as map_figures
from elbowroom.verbs.broadcasts import simulate_broadcast as simulate_broadcast
from elbowroom.verbs.broadcasts import tune_broadcasts as tune_broadcasts
from elbowroom.verbs.calibrate import Calibrated as Calibrated
from elbowroom.verbs.calibrate import resume_calibration as resume_calibration
from elbowroom.verbs.colocate import load_schedule as load_schedule
from elbowroom.verbs.colocate import pair_applications as pair_applications
from elbowroom.verbs.colocate import save_matrix_figure as save_matrix_figure
from elbowroom.verbs.colocate import save_slurm_script as save_slurm_script
from elbowroom.verbs.colocate import schedule_jobs as schedule_jobs
from elbowroom.verbs.colocate_measure import PlannedRuns as PlannedRuns
from elbowroom.verbs.colocate_predict import ForecastDocument as ForecastDocument
from elbowroom.verbs.diagnosis import diagnose as diagnose
from elbowroom.verbs.explain import explanation_figures as explanation_figures
from elbowroom.verbs.fit import evaluate as evaluate
from elbowroom.verbs.gpu_models import predict_cases as predict_cases
from elbowroom.verbs.gpu_models import read_cases as read_cases
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
from elbowroom.verbs.model_file import save_figure as save_figure
from elbowroom.verbs.model_file import save_panels as save_panels
from elbowroom.verbs.overlap import best_split as best_split
from elbowroom.verbs.overlap import overlap as overlap
from elbowroom.verbs.overlap import overlap_predicted as overlap_predicted
from elbowroom.verbs.overlap import overlap_table as overlap_table
from elbowroom.verbs.overlap import save_overlap_figure as save_overlap_figure
from elbowroom.verbs.run_folder import Run as Run
from elbowroom.verbs.run_folder import open as open
from elbowroom.verbs.run_folder import step_table as step_table
from elbowroom.verbs.saving import save as save
from elbowroom.verbs.schema import schema as schema
from elbowroom.verbs.schema import schema_names as schema_names
from elbowroom.verbs.show import ListedRun as ListedRun
from elbowroom.verbs.simulate import simulated_figure as simulated_figure
from elbowroom.verbs.simulate import simulated_node as simulated_node
from elbowroom.verbs.study import study_names as study_names
from elbowroom.virtual.definition import Definition as Definition
from elbowroom.virtual.requests import Pattern as Pattern
from elbowroom.virtual.simulated import Simulated as Simulated
from pathlib import Path as Path

__version__: str

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
    budget: int = 24,
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

    Ends after `budget` runs (a placement with a number of computing cores each), or as soon as nine of
    ten predictions have a 90 % interval of at most the relative `half_width`, or when no further run fits
    into `seconds` (0: no limit). `run` names the new run folder, `out` the model's file (default:
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

def compare(
    a: Run | Path | str,
    *others: Run | Path | str,
    at_least: float = 0.01,
) -> list[Change]:
    """Changes from run `a` to each other run of all values both have; those below the share `at_least`
    are never significant. UsageError where a run has no point in common with `a`.
    """

def doctor(
    *,
    mpi: str | None = None,
) -> list[Diagnosis]:
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
    llc: str | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    offsets: int = 32,
) -> ForecastDocument:
    """Replays the jobs of these profiles on shared NICs, pair by pair; nothing is run.

    `curve`: a file of `profile calibrate`; without it the NIC is the one that `network_intervals`
    assumes. `half`: each job has half of its ranks on a node, on twice the nodes, and is compared with
    itself on all. `model`: a FLOW model of the machine, for memory and last-level cache; `memory`
    (`job=6.2GB/s`) and `cache` (`job=20MiB@30GB/s`) state what counters do not say, `llc` the size of the
    last-level cache. UsageError for what is no profile, and for a model of another machine.
    """

def import_curves(
    path: Path | str,
    out: Path | str,
    *,
    kernel: str | None = None,
    size: int | None = None,
    command: Sequence[str] = (),
) -> Run:
    """Makes a run folder of curves measured with something else; `kernel` and `size` (bytes) say what the
    file does not.
    """

def list_runs(
    folder: Path | str = "runs",
) -> list[ListedRun]:
    """The runs in a folder, oldest first, unreadable ones at the end; a run folder lists itself.

    Raises UsageError where there is no such folder.
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
    stopped; `curve`: the NIC of the forecast, a file of `profile calibrate`. `tell` gets lines of
    progress. UsageError for applications that cannot be measured, MachineError where one fails or prints
    no time. What was measured before an error or an interrupt is kept.
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
    UsageError for an unknown paper, and for a folder of other settings or of another machine.
    """

def study_plan(
    paper: str | None = None,
    *,
    out: str | None = None,
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
