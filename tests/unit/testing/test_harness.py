from __future__ import annotations

import json
import ssl
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
import yaml

from fairlead.core.model.kinds import POD
from fairlead.errors import ConfigError, NotFound
from fairlead.runtime.virtual import Latencies
from fairlead.testing.builders import deployment, node, pod
from fairlead.testing.harness import Harness

pytest_plugins = ["pytester"]


def test_pods_are_scheduled_run_and_end() -> None:
    cluster = Harness(nodes=2)
    cluster.apply(pod("a").asks(cpu="1").running_for("10s").restarting("Never"))
    cluster.run(5)
    assert set(cluster.bindings()) == {"a"}
    assert cluster.phases() == {"a": "Running"}
    cluster.run(10)
    assert cluster.phases() == {"a": "Succeeded"}


def test_a_pod_that_does_not_fit_is_explained() -> None:
    cluster = Harness(nodes=[node("small").offers(cpu="1")])
    cluster.apply(pod("big").asks(cpu="2"))
    cluster.run(5)
    explanation = cluster.explain("big")
    assert explanation is not None
    assert explanation.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert cluster.explain("nobody") is None
    assert any(reason == "FailedScheduling" for reason, _ in cluster.events("big"))


def test_a_pod_waits_for_a_node_and_gets_it() -> None:
    cluster = Harness()
    cluster.apply(pod("a"))
    cluster.run(5)
    assert cluster.bindings() == {}
    cluster.apply(node("late"))
    cluster.until(lambda: cluster.bindings() == {"a": "late"}, limit=60)


def test_waiting_in_vain_is_an_assertion() -> None:
    with pytest.raises(AssertionError, match="not true within 10 s"):
        Harness().until(lambda: False, limit=10)


def test_names_outside_the_default_namespace_carry_it() -> None:
    cluster = Harness(nodes=1, schedulers=[])
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}}, pod("a", "lab"))
    cluster.bind("a", "node-0", namespace="lab")
    assert cluster.bindings() == {"lab/a": "node-0"}


def test_unknown_kinds_are_refused_by_name() -> None:
    with pytest.raises(NotFound, match='no matches for kind "Cow" in version "farm/v1"'):
        Harness().apply({"apiVersion": "farm/v1", "kind": "Cow", "metadata": {"name": "x"}})


def test_a_served_cluster_answers_clients_and_goes_on_living() -> None:
    with Harness(nodes=2) as cluster:
        config = yaml.safe_load(cluster.serve().read_text())
        assert cluster.serve().stat().st_mode & 0o777 == 0o600
        server = config["clusters"][0]["cluster"]
        token = config["users"][0]["user"]["token"]
        context = ssl.create_default_context(cadata=_decoded(server["certificate-authority-data"]))
        cluster.apply(deployment("web").replicas(4))
        cluster.until(lambda: list(cluster.phases().values()) == ["Running"] * 4, limit=20)
        request = Request(f"{server['server']}/api/v1/pods", headers={"Authorization": f"Bearer {token}"})
        with urlopen(request, context=context, timeout=10) as answer:
            assert len(json.load(answer)["items"]) == 4
        cluster.delete(POD, next(iter(cluster.phases())))
        path = cluster.serve()
    assert not path.exists()


def _decoded(text: str) -> str:
    from base64 import b64decode

    return b64decode(text).decode()


def test_the_fixture_is_there_for_other_projects(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.cluster(nodes=3)
        def test_three_nodes(cluster):
            cluster.apply({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
                "spec": {"replicas": 5, "selector": {"matchLabels": {"app": "web"}},
                         "template": {"metadata": {"labels": {"app": "web"}},
                                      "spec": {"containers": [{"name": "c", "image": "i"}]}}},
            })
            cluster.run(10)
            assert len(cluster.bindings()) == 5

        def test_an_empty_cluster(cluster):
            assert cluster.bindings() == {}
        """
    )
    pytester.runpytest_inprocess("--strict-markers").assert_outcomes(passed=2)


def test_the_plugin_costs_nothing_until_the_fixture_is_used() -> None:
    code = (
        "import sys, fairlead.testing.pytest_plugin;"
        "heavy = ('numpy', 'aiohttp', 'orjson', 'kubernetes', 'fairlead.cluster', 'fairlead.client');"
        "print([name for name in heavy if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout.strip() == "[]"


def test_kinds_have_the_names_that_kubectl_knows() -> None:
    cluster = Harness(nodes=1)
    cluster.apply(deployment("web"))
    for name in ("deployment", "deploy", "Deployments", "deployments.apps"):
        assert cluster.get(name, "web") is not None
    cluster.patch("deploy", "web", {"spec": {"replicas": 2}})
    cluster.run(5)
    assert len(cluster.list("pods")) == 2
    cluster.delete("deploy", "web")
    cluster.run(5)
    assert not cluster.list("po")
    assert cluster.kind("jobs.batch.volcano.sh").group == "batch.volcano.sh"
    with pytest.raises(NotFound, match='the server doesn\'t have a resource type "cows"'):
        cluster.list("cows")


def test_manifests_are_applied_by_path_and_what_is_wrong_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(yaml.safe_dump_all([pod("one").doc(), deployment("two").doc()]))
    (tmp_path / "a.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [node("n").doc()]}))
    cluster = Harness()
    cluster.apply(tmp_path)
    cluster.run(5)
    assert set(cluster.bindings().values()) == {"n"}
    assert len(cluster.bindings()) == 2
    for text, complaint in (("a: [", r"c\.yaml:1: not valid YAML"), ("- 1", r"c\.yaml: document 1: is no Kubernetes")):
        (tmp_path / "c.yaml").write_text(text)
        with pytest.raises(ConfigError, match=complaint):
            cluster.apply(str(tmp_path / "c.yaml"))
    with pytest.raises(ConfigError, match=r"nowhere: cannot be read"):
        cluster.apply(tmp_path / "nowhere")


def test_waits_are_known_to_the_fraction_of_a_second() -> None:
    cluster = Harness(nodes=1, latencies=Latencies(write=lambda rng: 0.125))
    start = cluster.now
    cluster.apply(pod("p").starting_after("250ms").running_for("1s").restarting("Never"))
    cluster.run(10)
    times = cluster.times("p")
    assert times is not None
    assert times.waited == 0.125
    assert (times.started, times.ended) == (start + 0.5, start + 1.5)
    assert cluster.times("nobody") is None


def test_a_scheduler_is_described_once() -> None:
    with pytest.raises(ConfigError, match="schedulers replaces it"):
        Harness(config={}, schedulers=[])
