"""Random clusters in which a workload waits: plain pods, Deployments, StatefulSets, Jobs, gangs, Volcano Jobs, quotas
of Koordinator, claims for devices. The same seed gives the same cluster: each suggestion is tried in a fresh one.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from random import Random

from fairlead.core.model.flow import Doc
from fairlead.testing import Harness, deployment, job, node, pod, podgroup, priority_class, queue, stateful_set
from fairlead.testing.builders import NodeBuilder, PodBuilder
from tests.support import claims
from tests.support.koordinator import elastic_quota, koord_group

QUOTA = "quota.scheduling.koordinator.sh/name"
GANG = "pod-group.scheduling.sigs.k8s.io"
World = tuple[Harness, list[Doc]]


def random_nodes(rng: Random) -> list[NodeBuilder]:
    made = []
    for number in range(rng.randint(2, 4)):
        one = node(f"n{number}").offers(cpu=str(rng.randint(2, 6))).in_zone(f"z{number % 2}")
        if rng.random() < 0.3:
            one = one.labelled(disk="ssd")
        if rng.random() < 0.25:
            one = one.tainted("team", value="a")
        made.append(one)
    return made


def random_pod(rng: Random, name: str) -> PodBuilder:
    one = pod(name).labelled(app="w").asks(cpu=str(rng.randint(1, 4)))
    if rng.random() < 0.3:
        one = one.selects(disk="ssd")
    if rng.random() < 0.2:
        one = one.spread({"app": "w"}, over="topology.kubernetes.io/zone")
    if rng.random() < 0.3:
        one = one.apart_from({"app": "w"})
    return one


def kube(seed: int) -> World:
    rng = Random(seed)
    cluster = Harness(nodes=random_nodes(rng), seed=seed)
    cluster.apply(priority_class("high", 1000))
    cluster.apply(*(pod(f"p{at}").asks(cpu=str(rng.randint(1, 2))) for at in range(rng.randint(0, 4))))
    cluster.apply(job("before").times(1).of(pod("before").asks(cpu="1").running_for("3600s").restarting("Never")))
    cluster.run(5)
    template, count = random_pod(rng, "w"), rng.randint(1, 6)
    if rng.random() < 0.2:
        template = template.of_priority("high")
    rolling = deployment("w").replicas(count).of(template)
    if rng.random() < 0.5:
        rolling = rolling.rolling(surge=rng.randint(0, 2), unavailable=rng.randint(1, 2))
    in_order = rng.choice(["Parallel", "OrderedReady"])
    made = rng.choice(
        [
            lambda: rolling,
            lambda: rolling,
            lambda: stateful_set("w").replicas(count).of(template).having(podManagementPolicy=in_order),
            lambda: job("w").times(count, at_once=count).of(template.restarting("Never").running_for("3600s")),
            lambda: template,
        ]
    )()
    return cluster, [made.doc()]


def claimed(seed: int) -> World:
    """Pods of a Deployment with claims from a template, or a pod with a claim by name."""
    rng = Random(seed)
    cluster = Harness(nodes=[node(f"n{at}").offers(cpu="8") for at in range(2)], seed=seed)
    cluster.apply(claims.device_class(), *(claims.gpus(f"n{at}", rng.randint(1, 4)) for at in range(2)))
    cluster.run(3)
    wanted = rng.randint(2, 5)
    own = pod("w").labelled(app="w").asks(cpu="1")
    if rng.random() < 0.5:
        reference = [{"name": "gpu", "resourceClaimName": "mine"}]
        return cluster, [claims.claim("mine", claims.devices(wanted)), own.having(resourceClaims=reference).doc()]
    reference = [{"name": "gpu", "resourceClaimTemplateName": "each"}]
    made = deployment("w").replicas(rng.randint(1, 3)).of(own.having(resourceClaims=reference))
    return cluster, [claims.template("each", claims.devices(wanted)), made.doc()]


def volcano(seed: int) -> World:
    rng = Random(seed)
    cluster = Harness(nodes=random_nodes(rng), volcano="default", seed=seed)
    cluster.run(3)
    cluster.apply(queue("team").capped_at(cpu=str(rng.randint(3, 8))), queue("others"))
    cluster.run(3)
    there = [pod(f"p{at}").asks(cpu="1").in_group("there").scheduled_by("volcano") for at in range(rng.randint(1, 3))]
    cluster.apply(podgroup("there", 1).in_queue("team"), *there)
    cluster.run(5)
    members, least = rng.randint(2, 6), rng.randint(1, 6)
    if rng.random() < 0.5:
        spec = {**random_pod(rng, "w").doc()["spec"], "schedulerName": "volcano"}
        pods = [pod(f"w-{at}").labelled(app="w").in_group("w").doc() for at in range(members)]
        return cluster, [
            podgroup("w", members).in_queue("team").doc(),
            *({**one, "spec": deepcopy(spec)} for one in pods),
        ]
    template = {"metadata": {"labels": {"app": "w"}}, "spec": random_pod(rng, "w").running_for("3600s").doc()["spec"]}
    template["metadata"]["annotations"] = pod("w").running_for("3600s").doc()["metadata"]["annotations"]
    tasks = [{"name": "worker", "replicas": members, "template": template}]
    spec = {"schedulerName": "volcano", "queue": "team", "minAvailable": min(least, members), "tasks": tasks}
    kind = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
    return cluster, [kind | {"metadata": {"name": "w", "namespace": "default"}, "spec": spec}]


def koordinator(seed: int) -> World:
    rng = Random(seed)
    cluster = Harness(nodes=random_nodes(rng), config="koordinator", seed=seed)
    above, own = rng.randint(3, 10), rng.randint(2, 8)
    cluster.apply(
        elastic_quota("dept", least={"cpu": "1"}, most={"cpu": str(above)}, is_parent=True),
        elastic_quota("team", least={"cpu": "1"}, most={"cpu": str(min(own, above))}, parent="dept"),
        elastic_quota("others", least={"cpu": "0"}, most={"cpu": str(above)}, parent="dept"),
    )
    cluster.run(3)
    for at in range(rng.randint(0, 3)):
        quota = {QUOTA: rng.choice(["team", "others"])}
        cluster.apply(pod(f"p{at}").asks(cpu="1").labelled(quota).scheduled_by("koord-scheduler"))
    cluster.run(5)
    members = rng.randint(1, 5)
    labels = {QUOTA: "team"}
    if rng.random() < 0.5:
        template = random_pod(rng, "w").labelled(labels).scheduled_by("koord-scheduler")
        return cluster, [deployment("w").replicas(members).of(template).doc()]
    template = random_pod(rng, "w").labelled({**labels, GANG: "w"}).scheduled_by("koord-scheduler")
    named = [template.doc() for _ in range(members)]
    for at, one in enumerate(named):
        one["metadata"]["name"] = f"w-{at}"
    return cluster, [koord_group("w", least=members), *named]


MANNERS: dict[str, Callable[[int], World]] = {
    "kube": kube, "volcano": volcano, "koordinator": koordinator, "claims": claimed,
}  # fmt: skip
IN_TURN = ("kube", "volcano", "koordinator", "kube", "volcano", "claims")
"""The manner of each seed: forty clusters are 14 of kube, 13 of Volcano, 7 of Koordinator and 6 with claims."""


def world(seed: int) -> World:
    return MANNERS[IN_TURN[seed % len(IN_TURN)]](seed)
