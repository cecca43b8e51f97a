"""Templates of shared GPUs: which shares a model gives, from a ConfigMap, and what is written of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlead.core.model import kinds
from fairlead.core.model.flow import Happened
from fairlead.koordinator.kinds import KOORD_DEVICE
from tests.support.documents import asking, node
from tests.support.koordinator import SCHEDULING, KoordScenario, koord_pod

CORE, CPU, DVPP = "huawei.com/npu-core", "huawei.com/npu-cpu", "huawei.com/npu-dvpp"
MEMORY, SHARED, RATIO = "koordinator.sh/gpu-memory", "koordinator.sh/gpu.shared", "koordinator.sh/gpu-memory-ratio"
VENDOR, MODEL = "node.koordinator.sh/gpu-vendor", "node.koordinator.sh/gpu-model"
CARD = {CORE: "8", CPU: "7", DVPP: "100", MEMORY: "21Gi", RATIO: "100"}
TABLE = """
huawei-Ascend310P3:
  vir01: {huawei.com/npu-core: 1, huawei.com/npu-cpu: 1, koordinator.sh/gpu-memory: 2Gi}
  vir04:
    huawei.com/npu-core: 4
    huawei.com/npu-cpu: 4
    huawei.com/npu-dvpp: 100
    koordinator.sh/gpu-memory: 10Gi
other-Card:
  half: {huawei.com/npu-core: 4, huawei.com/npu-cpu: 4, koordinator.sh/gpu-memory: 8Gi}
"""
VIR01 = {SHARED: "1", CORE: "1", CPU: "1", MEMORY: "2Gi"}
VIR04 = {SHARED: "1", CORE: "4", CPU: "4", DVPP: "100", MEMORY: "10Gi"}


def config_map(text: str = TABLE) -> Any:
    metadata = {"name": "gpu-shared-resource-templates", "namespace": "koordinator-system", "uid": "templates"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"data.yaml": text}}


def cards(*, count: int = 2, arguments: Any = None, labels: Any = None) -> KoordScenario:
    """A node with NPUs of Huawei."""
    scenario = KoordScenario(arguments)
    offered = {CORE: 8 * count, CPU: 7 * count, DVPP: 100 * count, MEMORY: f"{21 * count}Gi", SHARED: 100 * count}
    named = {VENDOR: "huawei", MODEL: "Ascend310P3"} if labels is None else labels
    scenario.tell(node("n0", named, **offered, **{RATIO: 100 * count}))
    devices = [{"type": "gpu", "minor": at, "health": True, "resources": CARD} for at in range(count)]
    kind = KOORD_DEVICE
    metadata = {"name": "n0", "uid": "device-n0"}
    scenario.tell(
        {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": {"devices": devices}}
    )
    return scenario


def tried(scenario: KoordScenario, name: str, wish: Any) -> Any:
    scenario.tell(koord_pod(name, containers=[asking({"cpu": "1", **wish})]))
    scenario.settle()
    return scenario.doc("pods", name, "default")


def given(doc: Any) -> list[tuple[int, str]]:
    """The cards that a pod was given, each with the template."""
    listed = json.loads(doc["metadata"]["annotations"][SCHEDULING + "device-allocated"])["gpu"]
    return [(one["minor"], (one.get("extension") or {}).get("gpuSharedResourceTemplate", "")) for one in listed]


def test_a_share_is_given_by_the_template_with_the_same_amounts() -> None:
    scenario = cards()
    scenario.tell(config_map())
    assert given(tried(scenario, "small", VIR01)) == [(0, "vir01")]
    assert [template for _, template in given(tried(scenario, "large", VIR04))] == ["vir04"]


def test_amounts_that_no_template_has_are_refused() -> None:
    scenario = cards()
    scenario.tell(config_map())
    tried(scenario, "odd", {**VIR01, CPU: "2"})
    assert scenario.message("odd").startswith("0/1 nodes are available: no matched GPU shared resource template.")


def test_a_template_of_another_model_does_not_serve() -> None:
    scenario = cards()
    scenario.tell(config_map())
    tried(scenario, "half", {SHARED: "1", CORE: "4", CPU: "4", MEMORY: "8Gi"})
    assert scenario.message("half").startswith("0/1 nodes are available: 1 no matched GPU shared resource template.")


def test_of_several_templates_with_the_same_amounts_none_is_named() -> None:
    scenario = cards()
    twins = "huawei-Ascend310P3:\n" + "".join(
        f"  {name}: {{{CORE}: 1, {CPU}: 1, {MEMORY}: 2Gi}}\n" for name in ("one", "two")
    )
    scenario.tell(config_map(twins))
    assert given(tried(scenario, "small", VIR01)) == [(0, "")]


def test_the_config_map_may_change_be_unreadable_and_go() -> None:
    scenario = cards()
    tried(scenario, "before", VIR01)
    assert "no matched GPU shared resource template" in scenario.message("before")
    scenario.gone(scenario.doc("pods", "before", "default"))
    scenario.tell(config_map())
    assert given(tried(scenario, "a", VIR01)) == [(0, "vir01")]
    scenario.tell(config_map("huawei-Ascend310P3: ["), happened=Happened.MODIFIED)
    assert [name for _, name in given(tried(scenario, "b", VIR01))] == ["vir01"], "the last that could be read counts"
    scenario.gone(config_map())
    tried(scenario, "c", VIR01)
    assert "no matched GPU shared resource template" in scenario.message("c")


def test_pods_that_share_by_percent_need_no_template() -> None:
    scenario = cards()
    wish = {CORE: "4", RATIO: "50"}
    assert "no matched" in (tried(scenario, "npu", wish) and scenario.message("npu"))
    scenario = cards(arguments={"DeviceShare": {"gpuSharedResourceTemplatesConfig": {"matchedResources": ["other"]}}})
    assert given(tried(scenario, "npu", wish)) == [(0, "")]


@pytest.mark.parametrize("model", ["Ascend310P3", "Other"])
def test_models_that_cannot_be_shared_are_refused(model: str) -> None:
    listed = [{"vendor": "huawei", "model": "Ascend310P3"}]
    scenario = cards(
        arguments={"DeviceShare": {"gpuShareUnsupportedModels": listed}}, labels={VENDOR: "huawei", MODEL: model}
    )
    doc = tried(scenario, "a", {RATIO: "50"})
    if model == "Other":
        assert given(doc) == [(0, "")]
    else:
        said = '1 model "Ascend310P3" of vendor "huawei" does not support GPU Share.'
        assert scenario.message("a").startswith(f"0/1 nodes are available: {said}")


def test_only_the_namespace_of_the_templates_is_watched() -> None:
    watches = [watch for watch in KoordScenario().scheduler.watches if watch.kind is kinds.CONFIG_MAP]
    assert [(watch.namespace, watch.optional) for watch in watches] == [("koordinator-system", True)]
