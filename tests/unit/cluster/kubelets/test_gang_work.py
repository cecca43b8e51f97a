"""A simulated pod that works with a gang uses up its run time only while enough of the gang run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fairlead.cluster.kubelets.gang_work import RUN_TOGETHER, WORKING
from fairlead.core.model.kinds import NODE, POD, Kind
from fairlead.testing.builders import PodBuilder, node, pod
from tests.support.kubelet_site import Site


@pytest.fixture
def site() -> Site:
    return Site()


def worker(name: str, *, needs: int, run_time: str = "100s", group: str = "train") -> PodBuilder:
    return pod(name).in_group(group).annotated({RUN_TOGETHER: str(needs)}).running_for(run_time).restarting("Never")


def working(site: Site, name: str) -> tuple[str, str]:
    (told,) = [one for one in site.status(name)["conditions"] if one["type"] == WORKING]
    return told["status"], told["message"]


def phases(site: Site, *names: str) -> list[str]:
    return [site.status(name)["phase"] for name in names]


def test_half_a_gang_waits_and_says_what_for(site: Site) -> None:
    site.bind(worker("a", needs=2), at=0)
    site.step(500)
    assert phases(site, "a") == ["Running"]
    assert working(site, "a") == ("False", "1 of 2 pods that work together run; 100.000000 s of its work is left")


def test_the_work_begins_when_the_last_member_that_is_needed_runs(site: Site) -> None:
    site.bind(worker("a", needs=2), at=0)
    site.bind(worker("b", needs=2), at=60)
    site.step(159)
    assert phases(site, "a", "b") == ["Running", "Running"]
    assert working(site, "a")[0] == "True"
    site.step(160)
    assert phases(site, "a", "b") == ["Succeeded", "Succeeded"]


def test_the_time_that_is_left_goes_on_when_a_lost_member_is_back(site: Site) -> None:
    site.bind(worker("a", needs=2), at=0)
    site.bind(worker("b", needs=2), at=0)
    site.remove("b", at=40)
    site.step(300)
    assert working(site, "a") == ("False", "1 of 2 pods that work together run; 60.000000 s of its work is left")
    site.bind(worker("c", needs=2), at=300)
    site.step(359)
    assert phases(site, "a", "c") == ["Running", "Running"]
    site.step(360)
    assert phases(site, "a", "c") == ["Succeeded", "Running"]


def test_members_that_are_done_count_on(site: Site) -> None:
    site.bind(worker("a", needs=2, run_time="10s"), at=0)
    site.bind(worker("b", needs=2, run_time="50s"), at=0)
    site.step(10)
    site.remove("a", at=11)
    site.step(50)
    assert phases(site, "b") == ["Succeeded"]


def test_a_member_on_a_node_that_fell_silent_does_not_run(site: Site) -> None:
    site.put(NODE, node("m").doc(), at=0)
    site.bind(worker("a", needs=2), at=0)
    site.put(POD, worker("b", needs=2).on("m").doc(), at=0)
    site.put(NODE, node("m").failing().doc(), at=30)
    site.step(30)
    site.step(200)
    assert working(site, "a") == ("False", "1 of 2 pods that work together run; 70.000000 s of its work is left")


def test_pods_of_another_group_are_another_gang(site: Site) -> None:
    site.bind(worker("a", needs=2), at=0)
    site.bind(worker("b", needs=2, group="other"), at=0)
    site.step(500)
    assert phases(site, "a", "b") == ["Running", "Running"]


def test_a_gang_that_is_whole_from_the_start_writes_no_condition() -> None:
    site = Site()
    site.put_together(worker("a", needs=2), worker("b", needs=2), at=0)
    site.step(100)
    assert phases(site, "a", "b") == ["Succeeded", "Succeeded"]
    assert WORKING not in site.conditions("a")


def test_a_kubelet_that_is_restarted_goes_on_with_what_was_left(site: Site) -> None:
    site.bind(worker("a", needs=2), at=0)
    site.bind(worker("b", needs=2), at=0)
    site.remove("b", at=40)
    site.restart(at=100)
    site.bind(worker("c", needs=2), at=200)
    site.step(259)
    assert phases(site, "a") == ["Running"]
    site.step(260)
    assert phases(site, "a") == ["Succeeded"]


def test_a_kubelet_that_sees_pods_and_nodes_alone_starts_pods_of_jobs_of_families(site: Site) -> None:
    """As beside a real API server, where looking up a kind that is not watched is refused."""
    site.world.get = _of_pods_and_nodes(site.world.get)  # type: ignore[method-assign]
    site.bind(pod("a").annotated({"volcano.sh/job-name": "train"}))
    assert phases(site, "a") == ["Running"]


def _of_pods_and_nodes(get: Callable[..., Any]) -> Callable[..., Any]:
    def refusing(kind: Kind, namespace: str, name: str) -> Any:
        if kind not in (POD, NODE):
            raise KeyError(kind)
        return get(kind, namespace, name)

    return refusing
