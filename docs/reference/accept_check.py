"""A ReFrame test that examines all nodes of an allocation in one job, by `elbowroom accept`.

    reframe -c accept_check.py -r -S AcceptCheck.num_tasks=64 --performance-report

`num_tasks=0` takes all idle nodes. The test fails where a node is suspected or lost, and names it.
"""

import json
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from reframe.core.backends import getlauncher
from reframe.core.builtins import run_after, run_before, sanity_function, variable


@rfm.simple_test
class AcceptCheck(rfm.RunOnlyRegressionTest):
    """One rank on each node, which `accept` starts itself."""

    descr = "Nodes that are slower than the others"
    valid_systems = ["*"]  # noqa: RUF012
    valid_prog_environs = ["*"]  # noqa: RUF012
    sourcesdir = None
    executable = "elbowroom"
    num_tasks_per_node = 1
    exclusive_access = True
    time_limit = "20m"
    keep_files = ["site.json"]  # noqa: RUF012

    options = variable(typ.List[str], value=[])

    @run_before("run")
    def set_command(self):
        """The program alone, without the launcher of the site."""
        self.executable_opts = ["accept", "-o", "site.json", *self.options]

    @run_after("setup")
    def start_once(self):
        """The driver runs once, on the first node."""
        self.job.launcher = getlauncher("local")()

    @sanity_function
    def accepted(self):
        """Whether all nodes are as the others, and could be judged."""
        document = self.document()
        return sn.assert_eq(document["exit_code"], 0, f"{document['verdict']} {document['why']}")

    @run_before("performance")
    def set_performance_variables(self):
        """The site's median of each quantity."""
        self.perf_variables = {
            level["quantity"]: sn.make_performance_function(sn.defer(level["median"]), level["unit"])
            for level in self.document()["levels"]
        }

    def document(self):
        """The result."""
        file = Path(self.stagedir) / "site.json"
        sn.evaluate(sn.assert_true(file.is_file(), "nothing was measured, see the job's stderr"))
        return json.loads(file.read_text())
