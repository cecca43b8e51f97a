"""Quota arithmetic works for any record with QuotaRules' fields, without rounds and jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from fairlead.volcano.queues.account import QuotaAccount, left_by_guarantees, share_of
from fairlead.volcano.queues.changes import EndingAmounts, SimulatedChanges
from fairlead.volcano.queues.filling import share_out
from fairlead.volcano.queues.share_tree import ShareTree
from fairlead.volcano.queues.tree import QuotaTree
from fairlead.volcano.records.amounts import Amounts

NOTHING = Amounts()


@dataclass(frozen=True)
class ElasticQuota:
    """A quota that is not Volcano's."""

    name: str
    parent: str = ""
    weight: int = 1
    capability: Mapping[str, int] | None = None
    deserved: Mapping[str, int] | None = None
    guarantee: Mapping[str, int] | None = None


def cpu(amount: float) -> Amounts:
    return Amounts(cpu=amount)


def test_a_queue_may_grow_into_what_others_guarantees_leave() -> None:
    rules = [ElasticQuota("a", guarantee={"cpu": 2000}), ElasticQuota("b", guarantee={"cpu": 3000})]
    account = QuotaAccount(rules[0])
    account.set_limit(left_by_guarantees(cpu(10000), rules))
    assert account.limit.cpu == 7000
    account.count(cpu(6000), cpu(500), elastic=NOTHING, held=None)
    assert account.request.cpu == 6500
    assert not account.would_exceed(account.limit, cpu(1000))
    assert account.would_exceed(account.limit, cpu(1001))


def test_what_is_elastic_does_not_keep_work_from_being_let_in_and_what_is_held_does() -> None:
    account = QuotaAccount(ElasticQuota("a"))
    account.set_limit(cpu(4000))
    account.count(cpu(3000), NOTHING, elastic=cpu(1000), held=cpu(1500))
    assert account.lacks(cpu(500)) == []
    assert account.lacks(cpu(501)) == ["cpu"]


def test_a_tree_inherits_limits_and_counts_work_for_all_ancestors() -> None:
    rules = [
        ElasticQuota("root", capability={"cpu": 8000, "memory": 1}),
        ElasticQuota("team", guarantee={"cpu": 1000}),
        ElasticQuota("leaf", parent="team", capability={"cpu": 3000}),
    ]
    tree = QuotaTree(rules)
    for account in tree.accounts_for_work("leaf"):
        account.count(cpu(500), NOTHING, elastic=NOTHING, held=None)
    tree.set_limits(cpu(16000))
    assert {name: account.allocated.cpu for name, account in tree.accounts.items()} == dict.fromkeys(tree.accounts, 500)
    assert [tree.accounts[name].limit.cpu for name in ("root", "team", "leaf")] == [8000, 8000, 3000]
    assert tree.troubles == {}


def test_only_queues_that_are_not_connected_to_the_root_have_no_account() -> None:
    rules = [ElasticQuota("root"), ElasticQuota("a"), ElasticQuota("b", parent="c"), ElasticQuota("c", parent="b")]
    tree = QuotaTree([*rules, ElasticQuota("d", parent="missing")])
    assert list(tree.accounts) == ["root", "a"]
    assert tree.troubles["d"] == "its parent missing does not exist"
    assert "is also below it" in tree.troubles["b"]
    assert list(tree.accounts_for_work("b")) == []


def test_filling_gives_by_weight_what_others_do_not_request() -> None:
    accounts = [QuotaAccount(ElasticQuota("a", weight=3)), QuotaAccount(ElasticQuota("b", weight=1))]
    for account, requested in zip(accounts, (1000, 9000), strict=True):
        account.set_limit(cpu(8000))
        account.count(NOTHING, cpu(requested), elastic=NOTHING, held=None)
    share_out(cpu(8000), accounts)
    assert [account.deserved.cpu for account in accounts] == pytest.approx([1000, 7000])


def test_paths_are_compared_by_weighted_dominant_share() -> None:
    tree = ShareTree(cpu(10000))
    tree.put("one", ["root", "a"], [1.0, 4.0], request=cpu(9000), allocated=cpu(4000))
    tree.put("other", ["root", "b"], [1.0, 1.0], request=cpu(9000), allocated=cpu(2000))
    tree.update()
    assert tree.compare(["root", "a"], ["root", "b"]) < 0
    tree.give("one", cpu(9000))
    tree.update()
    assert tree.compare(["root", "a"], ["root", "b"]) > 0, "who has all that it requests comes after the others"


def test_ending_pods_count_for_every_queue_above_theirs() -> None:
    ending = EndingAmounts(lambda queue: (queue, "root"))
    ending.add("a", cpu(1000))
    ending.add("b", cpu(500))
    ending.subtract("a", cpu(1000))
    assert [ending.of(name).cpu for name in ("a", "b", "root", "none")] == [0, 500, 500, 0]


def test_simulated_changes_are_kept_per_pod_until_forgotten() -> None:
    changes = SimulatedChanges()
    changes.remove("pod", "a", cpu(1000))
    changes.add("pod", "a", cpu(400))
    found = changes.of("pod", "a")
    assert found is not None
    assert found.cpu == -600
    changes.forget("pod")
    assert changes.of("pod", "a") is None


def test_a_share_is_the_largest_of_any_dimension_that_the_whole_has() -> None:
    assert share_of(Amounts(1000, 512, {"gpu": 9}), Amounts(4000, 1024)) == 0.5
