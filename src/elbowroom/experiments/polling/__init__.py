"""Workers that poll a shared list of tasks beside a ping-pong: those of the probe's pool, and StarPU's own
(Denis et al. 2021, section 5.4, Figure 9; Swartvagher 2022, 5.4.3, Figure 5.13).
"""

from __future__ import annotations

from elbowroom.experiments.experiment import Experiment
from elbowroom.experiments.polling import points, results

EXPERIMENT = Experiment(
    name="polling",
    question="Do workers that poll for tasks slow down small messages, and does polling less often help?",
    keys=points.PollingKeys,
    expand=points.expand,
    findings=results.findings,
    figures=results.figures,
    needs_starpu=lambda plan: bool(plan.keys.backoffs),
)
