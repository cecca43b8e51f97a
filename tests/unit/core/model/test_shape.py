"""The shape of a pod: what is read of the spec, and who shares it."""

from __future__ import annotations

import copy
import gc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.core.model.flow import Doc
from fairlead.core.model.pod_volumes import PodVolume, VolumeSource
from fairlead.core.model.selectors import EVERYTHING, NOTHING, selector_from_map
from fairlead.core.model.shape import PodShape, Shapes, compile_shape, normalised_image
from fairlead.core.model.taints import Taint, Toleration, first_untolerated, tolerates
from fairlead.core.model.terms import AffinityTerm, SpreadConstraint
from tests.support.documents import container, plain_pod, sidecar

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def shape(**spec: Any) -> PodShape:
    return compile_shape(plain_pod(**spec))


def test_an_empty_spec_has_the_defaults() -> None:
    pod = shape()
    assert (pod.priority, pod.has_priority, pod.preemption_policy) == (0, False, "PreemptLowerPriority")
    assert pod.scheduler_name == "default-scheduler"
    assert (pod.node_selector, pod.required_node_affinity, pod.preferred_node_affinity) == (None, None, None)
    assert (pod.has_pod_affinity, pod.has_required_affinity, pod.claims) == (False, False, False)


@pytest.mark.parametrize(
    ("toleration", "taint", "answer"),
    [
        (("k", "Equal", "v", ""), ("k", "v", "NoSchedule"), True),
        (("k", "Equal", "v", "NoExecute"), ("k", "v", "NoSchedule"), False),
        (("k", "Equal", "w", ""), ("k", "v", "NoSchedule"), False),
        (("", "Exists", "", ""), ("k", "v", "NoSchedule"), True),
        (("", "Equal", "v", ""), ("k", "v", "NoSchedule"), True),
        (("", "Equal", "", ""), ("k", "v", "NoSchedule"), False),
        (("j", "Exists", "", ""), ("k", "v", "NoSchedule"), False),
        (("k", "Gt", "1", ""), ("k", "5", "NoSchedule"), False),
        (("k", "Lt", "9", ""), ("k", "5", "NoSchedule"), False),
        (("k", "Near", "v", ""), ("k", "v", "NoSchedule"), False),
    ],
)
def test_tolerations_answer_taints_by_the_table(
    toleration: tuple[str, str, str, str], taint: tuple[str, str, str], answer: bool
) -> None:
    assert tolerates(Toleration(*toleration), Taint(*taint)) is answer


def test_an_empty_operator_is_equal_and_soft_taints_keep_nobody_away() -> None:
    tolerations = shape(tolerations=[{"key": "a", "value": "b"}]).tolerations
    assert tolerations == (Toleration("a", "Equal", "b", ""),)
    taints = [Taint("a", "b", "NoSchedule"), Taint("x", "", "PreferNoSchedule"), Taint("y", "", "NoExecute")]
    assert first_untolerated(taints, tolerations) == taints[2]
    assert first_untolerated(taints[:2], tolerations) is None


def test_a_required_node_affinity_without_terms_matches_no_node() -> None:
    assert shape(nodeSelector={}).node_selector == ()
    empty = shape(affinity={"nodeAffinity": {REQUIRED: {}}}).required_node_affinity
    assert empty is not None
    assert not empty.matches({}, "n")


def names(*terms: list[list[str]]) -> frozenset[str] | None:
    fields = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": values} for values in term]}
        for term in terms
    ]
    return shape(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": fields}}}).affinity_names


def test_terms_that_name_nodes_narrow_the_search() -> None:
    assert names([["a"]], [["b"]]) == {"a", "b"}
    assert names([["a", "b"], ["b", "c"]]) == {"b"}
    assert names([["a"], ["b"]]) == frozenset(), "a conflict"
    assert names([["a"]], []) is None
    assert names() is None


def test_preferred_node_affinity_keeps_its_error_as_a_value() -> None:
    broken = [{"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "In"}]}}]
    pod = shape(affinity={"nodeAffinity": {PREFERRED: broken}})
    assert "values set can't be empty" in pod.preferred_error
    assert shape(affinity={"nodeAffinity": {PREFERRED: []}}).preferred_node_affinity == ()
    assert shape(affinity={"nodeAffinity": {}}).preferred_node_affinity is None


def test_affinity_terms_default_to_the_namespace_of_the_pod() -> None:
    listed = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
    everywhere = {"topologyKey": "host", "namespaceSelector": {}, "labelSelector": None}
    pod = compile_shape(
        plain_pod(
            namespace="shop",
            affinity={"podAffinity": {REQUIRED: [listed]}, "podAntiAffinity": {REQUIRED: [everywhere]}},
        )
    )
    chosen = selector_from_map({"a": "b"})
    assert pod.pod_affinity == (AffinityTerm(frozenset({"shop"}), NOTHING, chosen, "zone"),)
    assert pod.pod_anti_affinity == (AffinityTerm(frozenset(), EVERYTHING, NOTHING, "host"),)
    assert pod.pod_affinity[0].matches("shop", {"a": "b"}, {})
    assert not pod.pod_affinity[0].matches("other", {"a": "b"}, {})


def test_an_affinity_object_that_says_nothing_is_still_there() -> None:
    assert shape(affinity={"podAntiAffinity": {}}).has_pod_affinity
    assert not shape(affinity={"nodeAffinity": {}}).has_pod_affinity


def test_a_broken_list_of_terms_is_dropped_whole_with_its_error() -> None:
    good = {"topologyKey": "zone", "labelSelector": {}}
    bad = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "not valid"}}}
    pod = shape(
        affinity={
            "podAffinity": {REQUIRED: [good, bad], PREFERRED: [{"weight": 3, "podAffinityTerm": good}]},
            "podAntiAffinity": {PREFERRED: [{"weight": 3, "podAffinityTerm": bad}]},
        }
    )
    assert pod.pod_affinity == ()
    assert [weight for weight, _ in pod.preferred_pod_affinity] == [3]
    assert pod.affinity_error.startswith('[requiredAffinityTerms: values[0][a]: Invalid value: "not valid"')
    assert ", preferredAntiAffinityTerms: values[0][a]" in pod.affinity_error


def test_spread_constraints_have_their_defaults_and_match_keys() -> None:
    constraint = {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    full = constraint | {
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "minDomains": 3,
        "nodeAffinityPolicy": "Ignore",
        "nodeTaintsPolicy": "Honor",
        "matchLabelKeys": ["hash", "absent"],
    }
    plain, rich = shape(topologySpreadConstraints=[constraint, full]).spread
    assert plain == SpreadConstraint(2, "zone", True, NOTHING)
    assert (rich.hard, rich.min_domains, rich.honor_affinity, rich.honor_taints) == (False, 3, False, True)
    assert rich.selector_for({"hash": "x"}) == selector_from_map({"app": "web", "hash": "x"})
    assert plain.selector_for({"hash": "x"}) is NOTHING


def test_host_ports_come_from_containers_and_sidecars_only() -> None:
    def port(**fields: Any) -> Doc:
        return {"containerPort": 80, **fields}

    pod = shape(
        containers=[container() | {"ports": [port(hostPort=80), port(hostPort=80), port(), port(hostPort=0)]}],
        initContainers=[
            sidecar() | {"ports": [port(hostPort=53, protocol="UDP", hostIP="10.0.0.1")]},
            container("init") | {"ports": [port(hostPort=99)]},
        ],
    )
    assert pod.host_ports == (("0.0.0.0", "TCP", 80), ("10.0.0.1", "UDP", 53))


@pytest.mark.parametrize(
    ("name", "normal"),
    [
        ("nginx", "nginx:latest"),
        ("nginx:1", "nginx:1"),
        ("host:5000/nginx", "host:5000/nginx:latest"),
        ("a/b@sha256:abc", "a/b@sha256:abc"),
    ],
)
def test_an_image_without_tag_is_the_latest(name: str, normal: str) -> None:
    assert normalised_image(name) == normal


def test_images_are_listed_init_containers_first_and_mounted_images_apart() -> None:
    pod = shape(
        containers=[container(image="b"), container(image="b")],
        initContainers=[container(image="a:1")],
        volumes=[{"name": "m", "image": {"reference": "model"}}],
    )
    assert pod.images == ("a:1", "b:latest", "b:latest")
    assert pod.image_volumes == ("model:latest",)
    assert pod.container_count == 3


def test_volumes_that_place_a_pod_are_kept_and_others_left_out() -> None:
    pod = shape(
        volumes=[
            {"name": "token", "projected": {}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data-0", "readOnly": True}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
            {"name": "gce", "gcePersistentDisk": {"pdName": "disk", "readOnly": True}},
            {"name": "rbd", "rbd": {"image": "i", "monitors": ["m1", "m2"]}},
            {"name": "inline", "csi": {"driver": "d.io"}},
            {"name": "conf", "configMap": {"name": "x"}},
        ]
    )
    assert pod.volumes == (
        PodVolume(VolumeSource.CLAIM, "data-0"),
        PodVolume(VolumeSource.EPHEMERAL, "scratch"),
        PodVolume(VolumeSource.GCE, "disk", read_only=True),
        PodVolume(VolumeSource.RBD, "i", pool="rbd", monitors=("m1", "m2")),
        PodVolume(VolumeSource.CSI, "d.io"),
    )


def test_features_that_a_node_must_declare() -> None:
    rules = {"restartPolicyRules": [{"action": "RestartAllContainers"}]}
    assert shape(containers=[container() | rules]).required_features == {"RestartAllContainersOnContainerExits"}
    assert shape(hostNetwork=True, hostUsers=False).required_features == {"UserNamespacesHostNetworkSupport"}
    assert not shape(hostNetwork=True).required_features


def test_pods_of_one_template_share_one_shape() -> None:
    shapes = Shapes()
    pods = []
    for i in range(3):
        document = plain_pod(
            f"web-{i}",
            containers=[container(cpu="1") | {"volumeMounts": [{"name": f"kube-api-access-{i}", "mountPath": "/t"}]}],
            volumes=[{"name": f"kube-api-access-{i}", "projected": {"sources": []}}],
            nodeName=f"node-{i}",
        )
        pods.append(shapes.of(document))
    assert pods[0] is pods[1] is pods[2]
    assert len(shapes) == 1


def test_other_spellings_of_the_same_are_one_shape() -> None:
    shapes = Shapes()
    plain = shapes.of(plain_pod(containers=[container(cpu="1", memory="1Gi")]))
    assert plain is shapes.of(plain_pod(containers=[container(cpu="1000m", memory="1024Mi")]))
    assert plain is shapes.of(plain_pod(containers=[container(memory="1Gi", cpu=1)], volumes=[]))
    settled = {"containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}
    assert plain is shapes.of(plain_pod(status=settled, containers=[container(cpu="1", memory="1Gi")]))


def test_the_namespace_splits_shapes_only_where_a_term_reads_it() -> None:
    shapes = Shapes()
    term = {"topologyKey": "zone", "labelSelector": {}}
    affine = {"podAffinity": {REQUIRED: [term]}}
    assert shapes.of(plain_pod(namespace="a")) is shapes.of(plain_pod(namespace="b"))
    assert shapes.of(plain_pod(namespace="a", affinity=affine)) is not shapes.of(
        plain_pod(namespace="b", affinity=affine)
    )
    anywhere = {"podAffinity": {REQUIRED: [term | {"namespaces": ["x"]}]}}
    assert shapes.of(plain_pod(namespace="a", affinity=anywhere)) is shapes.of(
        plain_pod(namespace="b", affinity=anywhere)
    )


def test_a_resize_in_progress_is_another_shape_and_its_end_the_old_one() -> None:
    shapes = Shapes()
    before = plain_pod(containers=[container(cpu="1")])
    during = copy.deepcopy(before)
    during["status"] = {"containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}
    assert shapes.of(during).request["cpu"] == 2000
    assert shapes.of(before).request["cpu"] == 1000


def test_versions_that_share_their_spec_differ_by_what_their_status_says_of_resources() -> None:
    shapes = Shapes()
    pending = plain_pod(containers=[container(cpu="1")])
    running = {**pending, "status": {"containerStatuses": [{"name": "main", "ready": True}]}}
    resized = {**pending, "status": {"containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}}
    assert shapes.of(pending) is shapes.of(running)
    assert shapes.of(resized).request["cpu"] == 2000
    assert shapes.of(running).request["cpu"] == 1000


def test_shapes_nobody_holds_are_forgotten() -> None:
    shapes = Shapes(remembered=2)
    for i in range(50):
        shapes.of(plain_pod(containers=[container(cpu=f"{i}m")]))
    gc.collect()
    assert len(shapes) <= 5


FRAGMENTS: dict[str, list[Any]] = {
    "priority": [None, 0, 5],
    "nodeSelector": [None, {}, {"a": "b", "c": "d"}, {"c": "d", "a": "b"}],
    "tolerations": [None, [], [{"operator": "Exists", "tolerationSeconds": 3}], [{"operator": "Exists"}]],
    "overhead": [None, {"cpu": "1"}, {"cpu": "1000m"}],
    "schedulerName": [None, "default-scheduler", "other"],
    "resources": [None, {}, {"requests": {"memory": "1Mi"}}],
    "volumes": [None, [{"name": "t-1", "projected": {}}], [{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]],
    "affinity": [None, {}, {"podAffinity": {}}, {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}],
    "containers": [[container(cpu="1")], [container(cpu="1", memory="0")], [container("b", cpu="1000m")]],
}
specs = st.fixed_dictionaries({field: st.sampled_from(choices) for field, choices in FRAGMENTS.items()})


@given(specs, specs)
def test_equal_meaning_is_the_same_object_and_other_meaning_is_not(one: Doc, other: Doc) -> None:
    shapes = Shapes()
    first, second = (
        shapes.of(plain_pod(**{field: value for field, value in spec.items() if value is not None}))
        for spec in (one, other)
    )
    alike = all(getattr(first, field) == getattr(second, field) for field in PodShape.__match_args__)
    assert (first is second) is alike
