"""A ReFrame test that runs a plan of elbowroom and takes its values as performance variables.

    reframe -c elbowroom_check.py -r -S ElbowroomCheck.plan=quick

Derive a class from it to add references of your system. The test fails where the machine was too noisy for
the results to be trusted.
"""

import json
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from reframe.core.builtins import run_before, sanity_function, variable

UNITS = {"us": "us", "mb-per-s": "MB/s", "million-per-s": "M/s", "mflop-per-s": "Mflop/s", "kept": "1"}
"""By the end of a measure's name."""


@rfm.simple_test
class ElbowroomCheck(rfm.RunOnlyRegressionTest):
    """Computation beside communication, as a plan measures it."""

    descr = "Interference of computation and communication"
    valid_systems = ["*"]  # noqa: RUF012
    valid_prog_environs = ["*"]  # noqa: RUF012
    sourcesdir = None
    local = True  # elbowroom starts the ranks itself: inside an allocation by its launcher
    executable = "elbowroom"

    plan = variable(str, value="quick")
    options = variable(typ.List[str], value=["--budget", "60s"])

    @run_before("run")
    def set_commands(self):
        """The run, whose exit code 3 (too noisy) is left to `trusted`, and its values as JSON."""
        self.executable_opts = ["run", self.plan, "--out", "measured", "--no-report", *self.options]
        self.postrun_cmds = [f"{self.executable} export measured --format bmf -o measured.json"]
        self.keep_files = ["measured", "measured.json"]

    @sanity_function
    def trusted(self):
        """Whether there are values, from a machine that was quiet."""
        values = Path(self.stagedir) / "measured.json"
        return sn.all(
            [
                sn.assert_true(sn.path_isfile(values), "nothing was measured, see the job's stderr"),
                sn.assert_not_found(
                    r"(?m)^No verdict|The\s+run\s+is\s+not\s+trusted",
                    self.stdout,
                    "the machine was too noisy",
                ),
            ]
        )

    @run_before("performance")
    def set_performance_variables(self):
        """One for each measure of each point; what was not measured has none."""
        points = json.loads((Path(self.stagedir) / "measured.json").read_text())
        self.perf_variables = {
            f"{point}:{measure}": sn.make_performance_function(sn.defer(metric["value"]), unit_of(measure))
            for point, measures in points.items()
            for measure, metric in measures.items()
        }


def unit_of(measure):
    """The unit that ends the measure's name."""
    return next((unit for end, unit in UNITS.items() if measure.endswith(f"-{end}")), "1")
