"""Which nodes are examined, and what Slurm knows of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from elbowroom.accept.allocation import AllocationRequest
from elbowroom.accept.node_jobs import ranks_of
from elbowroom.accept.slurm import features_of, switches_of
from elbowroom.errors import UsageError
from elbowroom.launch.launchers import host_names

SCONTROL = """#!/bin/sh
case "$2" in
topology)
  echo "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[0-1]"
  echo "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[2-3]"
  echo "SwitchName=top Level=1 LinkSpeed=1 Nodes=n[0-3] Switches=s[0-1]" ;;
hostnames)
  case "$3" in
  "n[0-1]") echo n0 n1 ;;
  "n[2-3]") echo n2 n3 ;;
  *) echo n0 n1 n2 n3 ;;
  esac ;;
esac
"""
SINFO = """#!/bin/sh
printf 'n0 rome,ib\\nn1 rome\\nn2 icelake\\nn3 (null)\\n'
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("scontrol", SCONTROL), ("sinfo", SINFO)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[0-3]")


@pytest.mark.usefixtures("slurm")
def test_the_nodes_of_a_slurm_allocation_are_recognised_with_their_switches_and_features() -> None:
    plan = AllocationRequest(by_feature="rome,icelake").plan()
    assert plan.nodes == ("n0", "n1", "n2", "n3")
    assert plan.switches == (0, 0, 1, 1)
    assert plan.features == ("rome", "rome", "icelake", "")


@pytest.mark.usefixtures("slurm")
def test_a_node_without_a_switch_leaves_the_switches_unknown() -> None:
    assert switches_of(["n0", "m0"]) is None


@pytest.mark.usefixtures("slurm")
def test_a_feature_that_no_node_has_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match="no node has this feature") as error:
        features_of(["n0", "n1", "n2"], "milan")
    assert "icelake, ib, rome" in error.value.hint or "ib, icelake, rome" in error.value.hint


def test_the_nodes_of_a_pbs_allocation_are_those_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "nodes"
    file.write_text("a\na\nb\nc\n")
    assert host_names("pbs", (), None, {"PBS_NODEFILE": str(file)}) == ("a", "b", "c")


@pytest.mark.parametrize("hosts", [("n1", "n0", "n2"), ("n1.site", "n0.site", "n2")])
def test_a_rank_is_on_the_node_whose_name_its_host_has(hosts: tuple[str, ...]) -> None:
    assert ranks_of(("n0", "n1", "n2"), hosts) == ("n1", "n0", "n2")


def test_ranks_on_hosts_that_are_named_by_addresses_are_in_their_order() -> None:
    assert ranks_of(("10.0.0.1", "10.0.0.2"), ("a", "b")) == ("10.0.0.1", "10.0.0.2")


def test_two_ranks_on_one_node_are_refused() -> None:
    with pytest.raises(UsageError, match="2 ranks are on a node of this name"):
        ranks_of(("n0", "n1"), ("n0", "n0"))


@pytest.mark.parametrize(("launcher", "shard"), [("clush", 1), ("ssh", 1), ("mpiexec", 256)])
def test_a_launcher_without_mpi_has_a_job_for_each_node(launcher: str, shard: int) -> None:
    assert AllocationRequest(launcher=launcher, hosts=("a", "b", "c")).plan().shard == shard
