"""Schedulers that share all nodes: the API refuses what no longer fits, and in the end every pod has a place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.processes.replicas import CPUS, OPTIMISTIC, SHARDS, share_nodes


@pytest.mark.long
@pytest.mark.parametrize("way", [OPTIMISTIC, SHARDS])
def test_replicas_fill_a_cluster_to_the_last_cpu_and_no_further(way: str, tmp_path: Path) -> None:
    outcome = share_nodes(tmp_path, way=way, replicas=3, nodes=12, pods=12 * CPUS)
    assert len(outcome.waits) == 12 * CPUS
    assert outcome.full == CPUS
    assert outcome.by_replica == {f"replica-{number}": 4 * CPUS for number in range(3)}
    if way == SHARDS:
        assert outcome.conflicts == 0
