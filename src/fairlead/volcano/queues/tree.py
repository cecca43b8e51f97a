"""QuotaTree: queues below queues, whose parent is whose, and what each may have of it.

What a leaf has, requests and is promised counts for all its ancestors. Going down from the root, a queue deserves at
least what it is guaranteed, inherits the limits that it does not name, and may grow into whatever its siblings'
guarantees leave of its parent.

A queue whose parent is missing, or that is below itself, has no account, and neither has what is below it. All other
queues have one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from fairlead.volcano.queues.account import QuotaAccount
from fairlead.volcano.records.amounts import INFINITY, UNLIMITED, Amounts, larger, total_of

if TYPE_CHECKING:
    from fairlead.volcano.queues.account import QuotaRules

ROOT = "root"
_MOST_OF_A_SCALAR = float(2**63 - 1)
"""Volcano's maxInt: the limit of a scalar that nobody limits, where cpu and memory have `UNLIMITED`."""


class TreeAccount(QuotaAccount):
    """`ancestors` are from the root down to the parent."""

    __slots__ = ("ancestors", "children")

    def __init__(self, rules: QuotaRules) -> None:
        super().__init__(rules)
        self.deserved = Amounts.of(rules.deserved)
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

    def common_depth(self, other: TreeAccount) -> int:
        """How far down this queue and another have the same ancestors."""
        depth = 0
        for at, (own, theirs) in enumerate(zip(self.ancestors, other.ancestors, strict=False)):
            if own is not theirs:
                break
            depth = at
        return depth

    def at_depth(self, depth: int) -> TreeAccount:
        """Its ancestor so far below the root, or it itself if it is not that deep."""
        return self.ancestors[depth] if depth < len(self.ancestors) else self


class QuotaTree:
    """Accounts of all queues that are connected to the root, and what is wrong with the others (`troubles`).

    Work is counted with `accounts_for_work` before `set_limits` finds what each queue may have."""

    def __init__(self, rules: Iterable[QuotaRules]) -> None:
        self.accounts: dict[str, TreeAccount] = {}
        self.troubles: dict[str, str] = {}
        known = {one.name: TreeAccount(one) for one in rules}
        for name, account in known.items():
            trouble = _link(account, known)
            if trouble:
                self.troubles[name] = trouble
            else:
                self.accounts[name] = account
        for account in self.accounts.values():
            if account.ancestors:
                account.ancestors[-1].children.append(account)

    def accounts_for_work(self, queue: str) -> Iterator[TreeAccount]:
        """The accounts for which work in a queue counts: its own and those above it; none if it is not connected. Work
        in a queue that has children is a trouble of that queue."""
        account = self.accounts.get(queue)
        if account is None:
            return iter(())
        if not account.is_leaf:
            self.troubles[queue] = "it has queues below it, and only queues without take groups"
        return account.line()

    def set_limits(self, total: Amounts) -> None:
        """From the root down. `total` is the cluster."""
        root = self.accounts.get(ROOT)
        if root is not None:
            _limit_root(root, total)
            _limit_children(root)


def _link(account: TreeAccount, accounts: dict[str, TreeAccount]) -> str:
    """Find a queue's ancestors, or say why it has none."""
    line: list[TreeAccount] = []
    one = account
    if ROOT not in accounts:
        return f"there is no queue {ROOT}"
    while one.name != ROOT:
        name = one.rules.parent or ROOT
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
