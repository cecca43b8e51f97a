"""The tree of queues that capacity keeps when hierarchy is on: whose parent is whose, and what each may have of it.

What a leaf has, asks for and is promised counts for all its ancestors. Going down from the root, a queue deserves at
least what it is guaranteed, inherits the limits it does not name, and may grow into whatever its siblings' guarantees
leave of its parent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairlead.model.amounts import INFINITY, UNLIMITED, Amounts, larger, total_of
from fairlead.plugins.volcano.ledger import Account

if TYPE_CHECKING:
    from fairlead.framework.round import QueueState, Round

ROOT = "root"
_MOST_OF_A_SCALAR = float(2**63 - 1)


class TreeAccount(Account):
    """`ancestors` are from the root down to the parent."""

    __slots__ = ("ancestors", "children")

    def __init__(self, queue: QueueState) -> None:
        super().__init__(queue)
        self.deserved = Amounts.of(queue.queue.deserved)
        self.ancestors: list[TreeAccount] = []
        self.children: list[TreeAccount] = []

    @property
    def is_leaf(self) -> bool:
        return not self.children

    def line(self) -> Iterator[TreeAccount]:
        """It and its ancestors, nearest first."""
        yield self
        yield from reversed(self.ancestors)

    def ancestor_at(self, level: int) -> TreeAccount | None:
        """Its parent at level 1, and so on."""
        return self.ancestors[-level] if 0 < level <= len(self.ancestors) else None


def tree_accounts(round: Round) -> dict[str, TreeAccount] | None:
    """Accounts of all queues; None if they make no tree, or a job is in a queue that is not a leaf."""
    accounts = {name: TreeAccount(queue) for name, queue in round.queues.items()}
    if ROOT not in accounts or not all(_link(account, accounts) for account in accounts.values()):
        return None
    for job in round.jobs.values():
        account = accounts[job.queue]
        if not account.is_leaf:
            return None
        for one in account.line():
            one.count(job)
    _limit_root(accounts[ROOT], round.total)
    _limit_children(accounts[ROOT])
    return accounts


def _link(account: TreeAccount, accounts: dict[str, TreeAccount]) -> bool:
    """Find a queue's ancestors. False if a parent is missing, or it is its own ancestor."""
    line: list[TreeAccount] = []
    one = account
    while one.name != ROOT:
        parent = accounts.get(one.queue.queue.parent or ROOT)
        if parent is None or parent is account or parent in line:
            return False
        line.insert(0, parent)
        one = parent
    account.ancestors = line
    if line:
        line[-1].children.append(account)
    return True


def _limit_root(root: TreeAccount, total: Amounts) -> None:
    """Without any limit of its own, the root has none, and jobs may be larger than the cluster. Of a limit that names
    only some dimensions, the others are zero."""
    if root.capability.empty:
        root.capability = Amounts(UNLIMITED, UNLIMITED, dict.fromkeys(total.scalars, _MOST_OF_A_SCALAR))
    root.limit = root.capability
    for child in root.children:
        child.deserved = larger(child.deserved, child.guarantee)
    root.deserved = total_of(child.deserved for child in root.children)
    root.guarantee = total_of(child.guarantee for child in root.children)


def _limit_children(parent: TreeAccount) -> None:
    guaranteed = total_of(child.guarantee for child in parent.children)
    left = parent.limit.exceeded_part(guaranteed)
    for child in parent.children:
        child.deserved = larger(child.deserved, child.guarantee)
        _inherit(child.capability, parent.capability)
        child.limit = (left + child.guarantee).cap(child.capability, INFINITY)
        _limit_children(child)


def _inherit(own: Amounts, parents: Amounts) -> None:
    if own.cpu <= 0:
        own.cpu = parents.cpu
    if own.memory <= 0:
        own.memory = parents.memory
    for name, amount in parents.scalars.items():
        own.scalars.setdefault(name, amount)
