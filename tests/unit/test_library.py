"""schedule and LiveScheduler: what Python programs call to have pods scheduled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairlead import ApiError, ConfigError, Invalid, LiveScheduler, node_filter, schedule
from fairlead.testing import Harness, deployment, node, pod

MANIFEST = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
- apiVersion: v1
  kind: Pod
  metadata: {name: web, namespace: shop}
  spec: {containers: [{name: main, image: web, resources: {requests: {cpu: 1}}}]}
"""


def test_objects_are_scheduled_and_those_that_wait_say_why(tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(MANIFEST)
    done = schedule(tmp_path, pod("big").asks(cpu="64"), deployment("api").replicas(3), nodes=2)
    assert done.bindings["shop/web"].startswith("node-")
    assert len(done.bindings) == 4
    assert list(done.waiting) == ["big"]
    assert done.waiting["big"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
    explanation = done.explain("big")
    assert explanation is not None
    assert explanation.verdict == "Unschedulable"


def test_a_configuration_is_a_document_or_a_file(tmp_path: Path) -> None:
    packing = {
        "profiles": [
            {
                "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}},
                "pluginConfig": [
                    {
                        "name": "NodeResourcesFit",
                        "args": {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu"}]}},
                    }
                ],
            }
        ]
    }
    small, large = node("small").offers(cpu="2"), node("large").offers(cpu="16")
    assert schedule(pod("p").asks(cpu="1"), nodes=[small, large], config=packing).bindings == {"p": "small"}
    file = tmp_path / "scheduler.yaml"
    file.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofils: []\n")
    with pytest.raises(ConfigError, match=r"scheduler\.yaml:3.*profils"):
        schedule(config=file)


def test_a_snapshot_is_scheduled_on(tmp_path: Path) -> None:
    from fairlead.cluster.store.snapshot import RedactionOptions, write_snapshot
    from fairlead.core.model import kinds

    cluster = Harness(nodes=1, schedulers=[])
    cluster.apply(pod("waits"))
    saved = [*cluster.list(kinds.NODE), *cluster.list(kinds.POD)]
    write_snapshot(tmp_path / "prod.snapshot", saved, now=cluster.now, redaction=RedactionOptions())
    assert schedule(snapshot=tmp_path / "prod.snapshot").bindings == {"waits": "node-0"}


def test_volcano_schedules_what_names_it() -> None:
    done = schedule(pod("gang").scheduled_by("volcano"), pod("plain"), nodes=1, volcano="default")
    assert done.bindings == {"gang": "node-0", "plain": "node-0"}


@node_filter(reason="node(s) of the wrong colour")
def is_green(pod: Any, node: Any) -> bool:
    return bool(node.labels.get("colour") == "green")


def test_plugin_objects_take_part() -> None:
    done = schedule(pod("p"), nodes=[node("red"), node("green").labelled(colour="green")], plugins=[is_green])
    assert done.bindings == {"p": "green"}
    with pytest.raises(ConfigError, match=r"<lambda>.*is not a plugin object .decorate a function"):
        schedule(plugins=[lambda pod, node: False])  # type: ignore[list-item]


def test_a_scheduler_places_the_pods_of_a_running_cluster() -> None:
    with Harness(nodes=2, schedulers=[]) as cluster:
        with LiveScheduler(cluster.serve()) as scheduler:
            cluster.apply(pod("small"), pod("big").asks(cpu="64"))
            cluster.until(lambda: "small" in cluster.bindings() and scheduler.explain("big") is not None, limit=30)
            explanation = scheduler.explain("big")
        assert explanation is not None
        assert "Insufficient cpu" in explanation.message


def test_a_cluster_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    with Harness() as cluster:
        config = cluster.serve().read_text()
    (tmp_path / "gone").write_text(config)
    with pytest.raises(ApiError):
        LiveScheduler(tmp_path / "gone")
    with pytest.raises(ConfigError, match="nowhere"):
        LiveScheduler(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("objects", "options", "words"),
    [
        ([{"kind": "Pod", "metadata": {"name": "a"}}], {}, "has no apiVersion"),
        ([[pod("a"), pod("b")]], {}, r"schedule\(\*objects\)"),
        ([3], {}, "objects: 3 is no object"),
        ([], {"nodes": -1}, "nodes: -1 must not be negative"),
        ([], {"nodes": "three"}, "nodes: 'three' is neither a number nor a list of nodes"),
        ([], {"volcano": "shiped"}, 'did you mean "shipped"'),
        ([], {"config": "koordinatr"}, 'did you mean "koordinator"'),
    ],
)
def test_a_wrong_argument_is_one_exception_that_names_it(objects: Any, options: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        schedule(*objects, **options)


def test_an_object_that_is_not_valid_raises_an_exported_exception() -> None:
    with pytest.raises(Invalid, match=r"spec.containers: Required value"):
        schedule({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}})
