"""Rollout: the pods of an object that is there already are replaced a few at a time, as its controller would do it.

    new pods come up to `surge` beside the old ─▶ the scheduler places them, or not ─▶ old ones go ─▶ more come ...

A changed template may be one that would fit if nothing else were there, and still not get past its own old pods. So a
change of what exists is tried in these steps and not as if it had been so from the start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.core.model import kinds
from fairlead.core.model.rolling import may_go, may_grow

if TYPE_CHECKING:
    from fairlead.core.engine.what_if.trial import Trial
    from fairlead.core.model.flow import Doc


@dataclass(frozen=True, slots=True)
class Rollout:
    """What a rollout replaces by what. `old` and `new` are uids of pods; a StatefulSet's are `ordered`: the last
    ordinal first, and one pod only after the one before it has its node. `target` is kind/name."""

    target: str
    replicas: int
    surge: int
    unavailable: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    ordered: bool = False
    stuck: bool = False
    """Whether its controller does not begin, because it waits for a pod that has no node."""

    @classmethod
    def of(cls, document: Doc) -> Rollout:
        """Raises TypeError, KeyError or ValueError if the document does not describe a rollout."""
        replicas, surge, unavailable = (int(document[field]) for field in ("replicas", "surge", "unavailable"))
        old, new = (tuple(map(str, document[field])) for field in ("old", "new"))
        flags = bool(document.get("ordered")), bool(document.get("stuck"))
        return cls(str(document["target"]), replicas, surge, unavailable, old, new, *flags)


class RolloutTrial:
    """One Rollout in a trial: `advance` does what its controller would do next."""

    def __init__(self, rollout: Rollout, pods: Mapping[str, Doc]) -> None:
        self._rollout = rollout
        self._pods = pods
        self._old = list(rollout.old)
        self._made = 0

    def advance(self, trial: Trial) -> bool:
        """Make and delete pods as far as it goes at the moment; whether all old ones are gone and all new ones made."""
        if not self._rollout.stuck:
            while self._one_by_one(trial) if self._rollout.ordered else self._grow(trial) | self._shrink(trial):
                pass
        return not self._old and self._made == len(self._rollout.new)

    def _one_by_one(self, trial: Trial) -> bool:
        if any(not trial.place_of(uid) for uid in self._rollout.new[: self._made]) or not self._old:
            return False
        self._remove(trial, [self._old[0]])
        self._make(trial, 1)
        return True

    def _grow(self, trial: Trial) -> bool:
        rollout = self._rollout
        number = may_grow(rollout.replicas, rollout.surge, self._made, len(self._old) + self._made)
        return self._make(trial, number)

    def _shrink(self, trial: Trial) -> bool:
        rollout = self._rollout
        available = sum(bool(trial.place_of(uid)) for uid in rollout.new[: self._made])
        working = [uid for uid in self._old if trial.place_of(uid)]
        going = may_go(rollout.replicas, rollout.unavailable, len(self._old) + self._made, self._made - available)
        if not going:
            return False
        broken = [uid for uid in self._old if uid not in working][:going]
        surplus = len(working) + available - (rollout.replicas - rollout.unavailable)
        crowded = Counter(map(trial.place_of, working))
        working.sort(key=lambda uid: -crowded[trial.place_of(uid)])
        return self._remove(trial, [*broken, *working[: max(0, surplus)]])

    def _make(self, trial: Trial, number: int) -> bool:
        made = self._rollout.new[self._made : self._made + number]
        for uid in made:
            trial.put(kinds.POD, self._pods[uid])
        self._made += len(made)
        return bool(made)

    def _remove(self, trial: Trial, uids: list[str]) -> bool:
        known = trial.scheduler.cluster.pods
        trial.remove_pods([known[uid].seen for uid in uids if uid in known])
        self._old = [uid for uid in self._old if uid not in uids]
        return bool(uids)
