"""Whatever levers changed outside of the program is as before after a kill -9 at any moment."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import get_args

import pytest

from guard_kills import Victims, is_restored_after_a_kill, levers_of, world

COUNT = int(os.environ.get("ELBOWROOM_GUARD_KILLS", "50"))
"""Kills in all."""


@pytest.mark.parametrize("victims", get_args(Victims))
def test_cores_policies_quotas_and_limits_are_restored(victims: Victims, tmp_path: Path) -> None:
    rng = random.Random(victims)
    with world(tmp_path) as one:
        levers = levers_of(one)
        for number in range(max(COUNT // len(get_args(Victims)), 1)):
            assert is_restored_after_a_kill(one, levers, rng, victims), f"kill {number}"
