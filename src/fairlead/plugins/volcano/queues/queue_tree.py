"""The tree of queues that capacity keeps when hierarchy is on: whose parent is whose, and what each may have of it.

What a leaf has, asks for and is promised counts for all its ancestors. Going down from the root, a queue deserves at
least what it is guaranteed, inherits the limits it does not name, and may grow into whatever its siblings' guarantees
leave of its parent.

A queue that hangs nowhere, because a parent is missing or it is below itself, has no account, and neither has what is
below it; a group in a queue with children gets nothing. Others go on. The original stops all queues for either.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairlead.model.amounts import INFINITY, UNLIMITED, Amounts, larger, total_of
from fairlead.plugins.volcano.queues.ledger import LedgerAccount

if TYPE_CHECKING:
    from fairlead.framework.round import QueueState, Round

ROOT = "root"
_MOST_OF_A_SCALAR = float(2**63 - 1)


class TreeAccount(LedgerAccount):
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


class Tree:
    """Accounts of all queues that hang together with the root, and what is wrong with the others."""

    def __init__(self, round: Round) -> None:
        self.accounts: dict[str, TreeAccount] = {}
        self.troubles: dict[str, str] = {}
        known = {name: TreeAccount(queue) for name, queue in round.queues.items()}
        for name, account in known.items():
            trouble = _link(account, known)
            if trouble:
                self.troubles[name] = trouble
            else:
                self.accounts[name] = account
        self._hang()
        self._count(round)
        if ROOT in self.accounts:
            _limit_root(self.accounts[ROOT], round.total)
            _limit_children(self.accounts[ROOT])

    def _hang(self) -> None:
        for account in self.accounts.values():
            if account.ancestors:
                account.ancestors[-1].children.append(account)

    def _count(self, round: Round) -> None:
        for job in round.jobs.values():
            account = self.accounts.get(job.queue)
            if account is None:
                continue
            if not account.is_leaf:
                self.troubles[job.queue] = "it has queues below it, and only queues without take groups"
            for one in account.line():
                one.count(job)


def _link(account: TreeAccount, accounts: dict[str, TreeAccount]) -> str:
    """Find a queue's ancestors, or say why it has none."""
    line: list[TreeAccount] = []
    one = account
    if ROOT not in accounts:
        return f"there is no queue {ROOT}"
    while one.name != ROOT:
        name = one.queue.queue.parent or ROOT
        parent = accounts.get(name)
        if parent is None:
            return f"{_whose(one, account)} parent {name} does not exist"
        if parent is account or parent in line:
            return f"{_whose(one, account)} parent {name} is also below it"
        line.insert(0, parent)
        one = parent
    account.ancestors = line
    return ""


def _whose(one: TreeAccount, account: TreeAccount) -> str:
    return "its" if one is account else f"{one.name}'s"


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
