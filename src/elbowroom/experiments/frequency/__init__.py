"""Frequencies while cores communicate, sleep or compute, and their effect (paper, Figures 1 to 3)."""

from __future__ import annotations

from elbowroom.experiments.experiment import Experiment
from elbowroom.experiments.frequency.points import FrequencyKeys, expand
from elbowroom.experiments.frequency.results import figures, findings

EXPERIMENT = Experiment(
    name="frequency",
    question="Does computation change the frequencies of the cores, and does that affect communication?",
    keys=FrequencyKeys,
    expand=expand,
    findings=findings,
    figures=figures,
)
