"""`elbowroom accept` on eight hosts in network namespaces: faults that are planted, and hosts that die."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accepted_hosts import BUDGET, limit_links, names, start_accept
from elbowroom.accept.journal import FILE
from linked_hosts import LinkedHosts, NoHostsError, linked_hosts

HOSTS = 8
takes_minutes = pytest.mark.skipif(
    not os.environ.get("ELBOWROOM_CLUSTER"),
    reason="takes a minute alone on the machine: set ELBOWROOM_CLUSTER=1",
)


@contextlib.contextmanager
def limited(folder: Path, count: int) -> Iterator[LinkedHosts]:
    try:
        with linked_hosts(folder, names(count)) as made:
            try:
                limit_links(made)
            except subprocess.CalledProcessError as error:
                pytest.skip(f"no token bucket here: {error.stderr.strip()}")
            yield made
    except NoHostsError as error:
        pytest.skip(str(error))


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[LinkedHosts]:
    with limited(tmp_path, HOSTS) as made:
        yield made


@pytest.fixture
def few_hosts(tmp_path: Path) -> Iterator[LinkedHosts]:
    with limited(tmp_path, 5) as made:
        yield made


def accepted(
    hosts: LinkedHosts, folder: Path, *words: str, budget: str = BUDGET
) -> tuple[int, dict[str, Any], str]:
    """Exit code, document and what was said."""
    process = start_accept(hosts, folder, ["--budget", budget, *words])
    out, said = process.communicate(timeout=900)
    return process.returncode, json.loads(out) if out.strip() else {}, said


def journal(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / FILE).read_bytes().splitlines()]


@pytest.mark.alone
def test_a_link_of_half_the_rate_is_found_and_explained(hosts: LinkedHosts, tmp_path: Path) -> None:
    limit_links(hosts, slow="n5")
    code, document, said = accepted(hosts, tmp_path, "-o", "run")
    assert code == 4, said
    assert [one["name"] for one in document["suspects"] if one["cause"] == "link"] == ["n5"], document
    found = next(one for one in document["suspects"] if one["name"] == "n5")
    assert 0.3 < found["loss"] < 0.9
    # The tests beside this one use the same cores: no node is drained by what they disturb.
    assert document["disturbed"] > 0.05
    assert document["drain"] == 'scontrol update NodeName=n5 State=DRAIN Reason="elbowroom: link"'
    assert not document["missing"]
    # All hosts have the clock of this machine.
    assert {one["name"]: abs(one["offset"]) < 1.0 for one in document["clocks"]} == dict.fromkeys(
        hosts.names, True
    )
    first = [line for line in journal(tmp_path / "run") if line.get("stage") in ("first", "whole")]
    # All that a node sends to rank 0 in the first examination.
    assert sum(line["bytes"] for line in first) / (HOSTS - 1) < 2000


@takes_minutes
@pytest.mark.alone
@pytest.mark.parametrize("launcher", ["ssh", "clush"])
def test_a_host_that_its_control_group_stops_is_found_where_no_mpi_starts_the_probes(
    few_hosts: LinkedHosts, tmp_path: Path, launcher: str
) -> None:
    if launcher == "clush" and not shutil.which("clush"):
        pytest.skip("clush is not installed: pip install ClusterShell")
    try:
        few_hosts.throttle("n3", 0.1)
    except NoHostsError as error:
        pytest.skip(str(error))
    code, document, said = accepted(few_hosts, tmp_path, "--launcher", launcher, budget="2s")
    assert code == 4, said
    [one] = document["suspects"]
    assert (one["name"], one["quantity"], one["cause"]) == ("n3", "throttled", "limit")
    assert "it allows 0.1 cores' worth of time" in one["evidence"]
    assert "n/a: messages between nodes: the launcher starts no MPI job of several nodes" in document["notes"]


@takes_minutes
@pytest.mark.alone
def test_a_host_that_dies_is_named_the_others_are_judged_and_the_run_can_be_resumed(
    few_hosts: LinkedHosts, tmp_path: Path
) -> None:
    process = start_accept(few_hosts, tmp_path, ["--budget", BUDGET, "-o", "run"])
    file = tmp_path / "run" / FILE
    end = time.monotonic() + 300
    while not (file.exists() and file.read_text().count('"part":"pairs"') >= 2):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.1)
    few_hosts.kill("n3")
    out, said = process.communicate(timeout=900)
    document = json.loads(out)
    assert process.returncode == 4, said
    assert [one["name"] for one in document["missing"]] == ["n3"]
    assert "n3" in document["verdict"]
    assert {level["quantity"] for level in document["levels"]} >= {"memory", "bandwidth", "late"}
    assert "lost: n3" in said
    rounds = {line.get("round", 0) for line in journal(tmp_path / "run") if line.get("stage") == "first"}
    few_hosts.revive("n3")
    before = file.read_text()
    code, again, said = accepted(few_hosts, tmp_path, "--resume", "run")
    assert code in (0, 3, 4), said
    assert not again["missing"]
    assert file.read_text().startswith(before)
    measured = [line for line in journal(tmp_path / "run")[len(before.splitlines()) :] if "part" in line]
    alone = [set(line["values"]) for line in measured if (line["stage"], line["part"]) == ("first", "alone")]
    # What is missing comes first, of that host alone; rounds before it died are not measured again.
    missed = [values for values in alone if values == {few_hosts.addresses["n3"]}]
    assert missed == alone[: len(missed)]
    assert 0 < len(missed) < len(rounds)


@takes_minutes
@pytest.mark.alone
def test_a_host_that_is_down_at_the_start_is_named(few_hosts: LinkedHosts, tmp_path: Path) -> None:
    few_hosts.kill("n4")
    code, document, said = accepted(few_hosts, tmp_path, "-o", "run")
    assert code == 4, said
    assert [one["name"] for one in document["missing"]] == [few_hosts.addresses["n4"]]
    assert "started no program" in document["missing"][0]["why"]


@takes_minutes
@pytest.mark.alone
def test_nodes_beyond_the_size_of_a_job_meet_in_jobs_that_are_drawn_anew(
    hosts: LinkedHosts, tmp_path: Path
) -> None:
    code, document, said = accepted(hosts, tmp_path, "-o", "run", "--shard", "6", "--json")
    assert code in (0, 3, 4), said
    assert any("inside jobs of 6 nodes" in note for note in document["notes"])
    partners: dict[str, set[str]] = {}
    for line in journal(tmp_path / "run"):
        for node, partner in line.get("partners", {}).items():
            partners.setdefault(node, set()).add(partner)
    assert min(map(len, partners.values())) > 2


@pytest.mark.alone
def test_two_hosts_of_one_name_are_refused(tmp_path: Path) -> None:
    try:
        with linked_hosts(tmp_path, names(4), called={"n2": "n1"}) as hosts:
            code, _, said = accepted(hosts, tmp_path)
    except NoHostsError as error:
        pytest.skip(str(error))
    assert code == 2
    assert "ranks are on a node of this name" in said
