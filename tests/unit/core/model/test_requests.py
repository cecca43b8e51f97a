"""What a pod asks for, in each of the views that scheduling has of it."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.core.model.flow import Doc
from fairlead.core.model.shape import PodShape, compile_shape
from tests.support.documents import container, plain_pod, sidecar

MI = 2**20


def shape(status: Doc | None = None, **spec: Any) -> PodShape:
    return compile_shape(plain_pod(status=status, **spec))


def asks(cpu: int = 0, memory: int = 0, storage: int = 0, **scalars: int) -> dict[str, int]:
    return {"cpu": cpu, "memory": memory, "ephemeral-storage": storage, **scalars}


def test_containers_are_summed_exactly_and_rounded_once() -> None:
    pod = shape(containers=[container(str(i), cpu="0.4m", memory="0.4") for i in range(3)])
    assert pod.request == asks(2, 2), "1.2m and 1.2 bytes, rounded up once, not 3m and 3 bytes"


def test_init_containers_count_by_their_peak_and_sidecars_always() -> None:
    pod = shape(
        containers=[container(cpu="1", memory="100Mi")],
        initContainers=[
            container("a", cpu="500m"),
            sidecar("b", cpu="200m", memory="50Mi"),
            container("c", cpu="2", memory="60Mi"),
            sidecar("d", cpu="300m"),
        ],
    )
    assert pod.request == asks(2200, 150 * MI), "cpu: c beside b; memory: main beside b"


def test_a_chain_of_sidecars_is_a_peak_of_its_own() -> None:
    pod = shape(containers=[], initContainers=[sidecar("a", cpu="1"), sidecar("b", cpu="2")])
    assert pod.request["cpu"] == 3000


def test_overhead_comes_on_top_of_everything() -> None:
    pod = shape(containers=[container(cpu="1")], overhead={"cpu": "250m", "memory": "64Mi"})
    assert pod.request == asks(1250, 64 * MI)
    assert pod.score_request == asks(1250, 264 * MI)


def test_pod_level_requests_replace_the_sum_for_what_they_name() -> None:
    pod = shape(
        containers=[container(cpu="1", memory="1Gi", ephemeral_storage="1Gi")],
        resources={"requests": {"cpu": "2", "hugepages-2Mi": "4Mi", "ephemeral-storage": "9Gi"}},
        overhead={"cpu": "100m"},
    )
    assert pod.request == asks(2100, 1024 * MI, 1024 * MI, **{"hugepages-2Mi": 4 * MI})


def test_the_fit_score_does_not_know_pod_level_requests() -> None:
    pod = shape(containers=[container()], resources={"requests": {"cpu": "2", "memory": "4Gi"}})
    assert pod.fit_request == pod.request == asks(2000, 4096 * MI)
    assert pod.score_request == asks(100, 200 * MI)
    assert (pod.nonzero_cpu, pod.nonzero_memory) == (2000, 4096 * MI)


def test_defaults_go_to_each_container_that_lacks_the_key_and_zero_is_kept() -> None:
    pod = shape(containers=[container("a"), container("b", cpu="0", memory="10Mi"), container("c", cpu="1")])
    assert (pod.nonzero_cpu, pod.nonzero_memory) == (1100, 410 * MI)
    assert pod.score_request == asks(1100, 410 * MI)
    assert pod.request == asks(1000, 10 * MI)


def test_defaults_go_to_init_containers_too() -> None:
    pod = shape(containers=[container(cpu="50m", memory="1Mi")], initContainers=[container("init")])
    assert (pod.nonzero_cpu, pod.nonzero_memory) == (100, 200 * MI)
    assert pod.request == asks(50, MI)


def test_with_pod_level_requests_the_default_is_only_for_what_nobody_names() -> None:
    pod = shape(containers=[container("a"), container("b")], resources={"requests": {"cpu": "1"}})
    assert (pod.nonzero_cpu, pod.nonzero_memory) == (1000, 400 * MI), "once per container"
    named = shape(containers=[container("a"), container("b", memory="1Mi")], resources={"requests": {"cpu": "1"}})
    assert (named.nonzero_cpu, named.nonzero_memory) == (1000, MI)
    by_overhead = shape(containers=[container("a")], resources={"requests": {"cpu": "1"}}, overhead={"memory": "1Mi"})
    assert by_overhead.nonzero_memory == MI


def test_scalars_keep_their_zeros_and_unknown_names_are_ignored() -> None:
    pod = shape(containers=[container(**{"nvidia.com/gpu": "0", "foo": "3", "pods": "1"})])
    assert pod.request == asks(**{"nvidia.com/gpu": 0})
    assert pod.scalars == ["nvidia.com/gpu"]
    assert shape(containers=[container()]).scalars == []


def resizing(requests: Doc, allocated: Doc | None = None, *, name: str = "main", **more: Any) -> Doc:
    reported = {"name": name, "resources": {"requests": requests}, "allocatedResources": allocated or {}}
    return {"containerStatuses": [reported], **more}


INFEASIBLE = {"conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]}


def test_a_resize_counts_by_the_largest_of_wanted_actual_and_promised() -> None:
    containers = [container(cpu="2", memory="100Mi")]
    pod = shape(resizing({"cpu": "1", "memory": "300Mi"}, {"cpu": "3"}), containers=containers)
    assert pod.request == asks(3000, 300 * MI)
    assert (pod.nonzero_cpu, pod.nonzero_memory) == (3000, 300 * MI)
    assert pod.fit_request == pod.score_request == asks(2000, 100 * MI), "the fit check sees the spec alone"


def test_a_resize_that_cannot_be_had_does_not_count_as_wanted() -> None:
    status = resizing({"cpu": "1"}, {"cpu": "1500m"}, **INFEASIBLE)
    assert shape(status, containers=[container(cpu="8")]).request["cpu"] == 1500
    deferred = resizing({"cpu": "1"}, conditions=[{"type": "PodResizePending", "reason": "Deferred"}])
    assert shape(deferred, containers=[container(cpu="8")]).request["cpu"] == 8000


def test_resizes_concern_sidecars_but_not_plain_init_containers() -> None:
    containers = [container("main", cpu="1")]
    entry = {"name": "x", "resources": {"requests": {"cpu": "5"}}}
    status = {"initContainerStatuses": [entry]}
    assert shape(status, containers=containers, initContainers=[sidecar("x", cpu="1")]).request["cpu"] == 6000
    assert shape(status, containers=containers, initContainers=[container("x", cpu="1")]).request["cpu"] == 1000


def test_a_status_without_resources_changes_nothing() -> None:
    status = {"containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "9"}}]}
    assert shape(status, containers=[container(cpu="1")]).request["cpu"] == 1000


@pytest.mark.parametrize(("more", "cpu"), [({}, 4000), (INFEASIBLE, 3000)])
def test_pod_level_resizes_follow_the_same_rule(more: Doc, cpu: int) -> None:
    status = {"resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "3"}, **more}
    pod = shape(status, resources={"requests": {"cpu": "4"}})
    assert (pod.request["cpu"], pod.fit_request["cpu"], pod.score_request["cpu"]) == (cpu, 4000, 100)
