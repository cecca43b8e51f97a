"""What a tree of ElasticQuotas never does: grant more than it has, or keep back what somebody asks for.

First the tree alone, with quotas and requests of all kinds; then in a running scheduler, whose binds are refused, whose
pods go, preempt each other within a quota and are evicted for what others ask back, and which is replaced by a new one.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.errors import Conflict
from fairlead.koordinator.quotas.accounts import LendingTree, TreeRules
from fairlead.koordinator.records.quotas import ROOT, ElasticQuota
from tests.support.documents import node
from tests.support.koordinator import QUOTA, KoordScenario, elastic_quota, koord_pod

# ---- the tree ----

AMOUNTS = st.integers(0, 5000)
LEAVES = ("a", "b", "c", "d", "e")
PARENTS = {"a": "p", "b": "p", "c": "q", "d": "q", "e": ROOT, "p": ROOT, "q": ROOT}
SHAPES = st.fixed_dictionaries(
    {name: st.tuples(AMOUNTS, AMOUNTS, st.integers(1, 5000), st.booleans()) for name in PARENTS}
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(LEAVES), st.integers(-3000, 6000)),
        st.tuples(st.just("total"), st.integers(0, 12_000)),
    ),
    max_size=12,
)


def _quota(name: str, one: int, other: int, weight: int, lends: bool) -> ElasticQuota:
    least, most = min(one, other), max(one, other)
    return ElasticQuota(
        name, "default", PARENTS[name], name in ("p", "q"), lends, {"cpu": most}, {"cpu": least}, {"cpu": weight}
    )


def _work_out(tree: LendingTree) -> None:
    """Until nothing moves: a refresh looks at one path, and leaves the minima of others as they were."""
    for _ in range(20):
        before = {name: dict(account.runtime) for name, account in tree.quotas.items()}
        for leaf in LEAVES:
            list(tree.refresh(leaf))
        if before == {name: account.runtime for name, account in tree.quotas.items()}:
            return
    raise AssertionError("the runtimes never come to rest")


@given(shapes=SHAPES, steps=STEPS)
def test_what_is_granted_under_a_parent_sums_to_what_the_parent_has(
    shapes: dict[str, tuple[int, int, int, bool]], steps: list[tuple[str, int]]
) -> None:
    """Or to all that is asked for, if that is less; what does not lend asks for its minimum, if there is room."""
    tree = LendingTree("", {name: _quota(name, *shape) for name, shape in shapes.items()}, TreeRules())
    tree.set_total({"cpu": 8000})
    for what, amount in steps:
        if what == "total":
            tree.set_total({"cpu": amount})
        else:
            asked = tree.quotas[what].child_request.get("cpu", 0)
            tree.change_request(what, {"cpu": max(amount, -asked)}, {})
        _work_out(tree)
        for parent in (ROOT, "p", "q"):
            children = [one for name, one in tree.quotas.items() if PARENTS.get(name) == parent]
            granted = [child.runtime.get("cpu", 0) for child in children]
            has = tree.quotas[parent].pool.total.get("cpu", 0)
            wanted = sum(child.limited_request().get("cpu", 0) for child in children)
            assert sum(granted) == min(has, wanted), (parent, granted, has, wanted)
            for child, runtime in zip(children, granted, strict=True):
                assert runtime <= child.max["cpu"]


# ---- a running scheduler ----

LIVES = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), st.sampled_from(["a", "b", "c"]), st.integers(1, 4), st.integers(0, 2)),
        st.tuples(st.just("fixed"), st.sampled_from(["a", "b"]), st.integers(1, 2), st.just(0)),
        st.tuples(st.just("delete"), st.just(""), st.integers(0, 30), st.just(0)),
        st.tuples(st.just("refuse"), st.just(""), st.just(0), st.just(0)),
        st.tuples(st.just("restart"), st.just(""), st.just(0), st.just(0)),
        st.tuples(st.just("wait"), st.just(""), st.just(0), st.just(0)),
    ),
    min_size=1,
    max_size=14,
)
MOST = {"dept": 5, "a": 4, "b": 4, "c": 3}
LEAST = {"dept": 4, "a": 2, "b": 2, "c": 1}


class Life:
    """Two quotas under a parent, one beside it, on eight cores. What uses too much loses pods after a second."""

    def __init__(self) -> None:
        self.scenario, self.count = self._fresh(), 0
        self.scenario.tell(node("n0", cpu=4), node("n1", cpu=4))
        for name, most in MOST.items():
            amounts: dict[str, Any] = {"least": {"cpu": str(LEAST[name])}, "most": {"cpu": str(most)}}
            parent = "dept" if name in ("a", "b") else ""
            self.scenario.tell(elastic_quota(name, **amounts, parent=parent, is_parent=name == "dept"))

    def _fresh(self) -> KoordScenario:
        revokes = {"monitorAllQuotas": True, "delayEvictTime": "1s", "enableCheckParentQuota": True}
        return KoordScenario({"ElasticQuota": revokes})

    def do(self, what: str, quota: str, number: int, priority: int) -> None:
        self.count += 1
        name, scenario = f"{quota or what}-{self.count}", self.scenario
        if what == "pod":
            scenario.tell(koord_pod(name, quota=quota, cpu=str(number), priority=priority))
        elif what == "fixed":
            fixed = {QUOTA + "preemptible": "false"}
            scenario.tell(koord_pod(name, quota=quota, cpu=str(number), priority=5, labels=fixed))
        elif what == "delete":
            scenario.delete_a_pod(number)
        elif what == "refuse":
            scenario.answer(Conflict("refused by the test"), to="binding")
        elif what == "wait":
            scenario.run(after=5)
        else:
            self.scenario = self._fresh().follow_on(scenario)

    def used(self) -> Counter[str]:
        """The cores that bound pods have of each quota."""
        found: Counter[str] = Counter()
        for key, doc in self.scenario.docs.items():
            if key[0] == "pods" and doc["spec"].get("nodeName"):
                quota = doc["metadata"]["labels"][QUOTA + "name"]
                for one in (quota, "dept") if quota in ("a", "b") else (quota,):
                    found[one] += int(doc["spec"]["containers"][0]["resources"]["requests"]["cpu"])
        return found

    def check(self) -> None:
        self.scenario.cluster.check()
        for name, cores in self.used().items():
            assert cores <= MOST[name], (name, cores)

    def shown(self, name: str, part: str) -> float:
        quota = self.scenario.doc("elasticquotas", name, "default")
        shown = (quota.get("status") or {}).get(part)
        amounts = shown if part == "used" else json.loads(quota["metadata"]["annotations"].get(QUOTA + part) or "{}")
        text = str((amounts or {}).get("cpu", "0"))
        return int(text[:-1]) / 1000 if text.endswith("m") else float(text)


@settings(max_examples=40, deadline=None)
@given(steps=LIVES)
def test_quotas_never_hand_out_more_than_they_have_through_failures_restarts_and_preemption(
    steps: list[tuple[str, str, int, int]],
) -> None:
    life = Life()
    for step in steps:
        life.do(*step)
        life.check()
        life.scenario.settle()
        life.check()
    for _ in range(8):  # what was lent is taken back, and what waits is tried again
        life.scenario.run(after=15)
        life.scenario.settle()
        life.check()
    used = life.used()
    for name in MOST:
        assert life.shown(name, "used") == used[name], name
        assert used[name] <= life.shown(name, "runtime"), name
    assert life.shown("a", "runtime") + life.shown("b", "runtime") <= life.shown("dept", "runtime")
    assert life.shown("dept", "runtime") + life.shown("c", "runtime") <= 8
