"""Queues whose gangs wait for each other: each needs more than proportion gives its queue while the other waits too.

In the original none of them starts, also on an empty cluster (`large_gangs_wait_for_each_other`). By default one does,
so only a configuration that keeps the original's behaviours has this trap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from fairlead.core.model.quantity import format_quantity
from fairlead.volcano.config.traps import Trap
from fairlead.volcano.queues.account import QuotaAccount, left_by_guarantees
from fairlead.volcano.queues.filling import share_out
from fairlead.volcano.records.amounts import Amounts

if TYPE_CHECKING:
    from fairlead.core.model.group import PodGroup
    from fairlead.volcano.config.records import VolcanoConfig
    from fairlead.volcano.records.queues import Queue

Units = Mapping[str, int]
_OVER = ("Running", "Completed")


def traps_of_waiting_queues(
    config: VolcanoConfig, groups: Iterable[PodGroup], queues: Iterable[Queue], total: Units | None
) -> list[Trap]:
    """`total` is what the nodes can allocate together; where it is not known, neither is what queues deserve."""
    proportion = config.find("proportion")
    if total is None or proportion is None or not proportion.on("enabledAllocatable", default=True):
        return []
    if not config.quirks.large_gangs_wait_for_each_other:
        return []
    waiting = [group for group in groups if group.phase not in _OVER and group.min_resources]
    accounts = _accounts(waiting, {queue.name: queue for queue in queues}, Amounts.of(total))
    large = [group for group in waiting if group.min_resources and _lacks(accounts, group)]
    if len({_queue(group) for group in large}) < 2:
        return []
    return [Trap(("podgroup", group.key), *_words(group, large, accounts)) for group in large]


def _queue(group: PodGroup) -> str:
    return group.queue or "default"


def _accounts(groups: Iterable[PodGroup], queues: Mapping[str, Queue], total: Amounts) -> dict[str, QuotaAccount]:
    """The accounts of the queues in which groups wait, with what each deserves while all wait."""
    left = left_by_guarantees(total, queues.values())
    accounts: dict[str, QuotaAccount] = {}
    for group in groups:
        if _queue(group) not in queues:
            continue
        account = accounts.get(_queue(group))
        if account is None:
            account = accounts[_queue(group)] = QuotaAccount(queues[_queue(group)])
            account.set_limit(left)
        account.request.add(Amounts.of(group.min_resources))
    share_out(total, list(accounts.values()))
    return accounts


def _lacks(accounts: Mapping[str, QuotaAccount], group: PodGroup) -> list[str]:
    """The resources of which a group needs more than its queue deserves, but not more than it may have."""
    account, least = accounts.get(_queue(group)), Amounts.of(group.min_resources)
    if account is None or account.lacks(least):
        return []
    return least.exceeding_requested(account.deserved, least)


def _words(group: PodGroup, large: list[PodGroup], accounts: Mapping[str, QuotaAccount]) -> Iterator[str]:
    resource = _lacks(accounts, group)[0]
    needs = format_quantity((group.min_resources or {})[resource], resource)
    deserves = format_quantity(accounts[_queue(group)].deserved.to_units()[resource], resource)
    others = [one for one in large if _queue(one) != _queue(group)]
    named = " and ".join(f"podgroup {one.key} of queue {_queue(one)}" for one in others)
    yield f"it needs {needs} {resource}, of which its queue {_queue(group)} deserves {deserves}, and {named} waits too"
    yield "proportion gives no queue more than it deserves, so that they wait for each other, also on an empty cluster"
    yield "leave out --volcano-compatible, or set enabledAllocatable: false of proportion, as in the preset kube-batch"
