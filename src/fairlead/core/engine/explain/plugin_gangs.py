"""Explanations of gangs that a plugin keeps together and the Cluster does not know.

They are put together from what the last attempts at the members said, and from what the plugin knows of the gang.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from fairlead.core.engine.explain.lacks import domain_lack
from fairlead.core.engine.explain.shortages import of_members
from fairlead.core.framework.explainers import GangExplainer
from fairlead.core.model.gang_explanation import GangExplanation
from fairlead.core.state.cluster import PodPlace

if TYPE_CHECKING:
    from fairlead.core.engine.explain.pod import Explanations
    from fairlead.core.engine.modes import LacksOf
    from fairlead.core.framework.explainers import GangFacts
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.explanation import Explanation
    from fairlead.core.state.cluster import Cluster

_TEXTS = 5


def explain_plugin_gang(
    namespace: str,
    name: str,
    profiles: Iterable[Profile],
    cluster: Cluster,
    explanations: Explanations,
    lacks_of: LacksOf,
) -> GangExplanation | None:
    """The explanation of a gang; None if no plugin knows it. `explanations` are those of its members."""
    for profile in profiles:
        for plugin in profile.plugins():
            if isinstance(plugin, GangExplainer):
                facts = plugin.gang_facts(namespace, name, cluster)
                if facts is not None:
                    about = GangExplanation(namespace, name, facts.api, profile.name, "Waiting")
                    return _explained(about, facts, cluster, explanations, lacks_of)
    return None


def _explained(
    about: GangExplanation, facts: GangFacts, cluster: Cluster, explanations: Explanations, lacks_of: LacksOf
) -> GangExplanation:
    places = {pod.uid: cluster.pods[pod.uid] for pod in facts.pods}
    pending = [pod for pod in facts.pods if places[pod.uid].place is PodPlace.PENDING]
    seated = [uid for uid, state in places.items() if state.place in (PodPlace.BOUND, PodPlace.RELEASING)]
    assumed = [uid for uid, state in places.items() if state.place is PodPlace.ASSUMED]
    scheduled = len(seated) + len(assumed)
    explained = {pod.uid: known for pod in pending if (known := explanations.of(pod.uid)) is not None}
    texts = [reason for one in explained.values() for blocker in one.blockers for reason in blocker.reasons]
    texts += [one.message for one in explained.values()]
    verdict = _verdict(facts, scheduled, explained, bool(pending))
    needed = max(0, facts.minimum - scheduled)
    wanting = pending[: needed or None]
    lacks = () if verdict == "Scheduled" else (*domain_lack(facts.domains, needed), *lacks_of(wanting, texts))
    first = next(iter(explained.values()), None)
    return replace(
        about,
        verdict=verdict,
        message="" if first is None or verdict == "Scheduled" else _message(explained),
        at=None if first is None else first.at,
        attempts=max((one.attempts for one in explained.values()), default=0),
        minimum=facts.minimum,
        members=len(facts.pods),
        scheduled=scheduled,
        fits=scheduled,
        where=Counter(cluster.table.name(places[uid].row) for uid in (*seated, *assumed)),
        domains=facts.domains,
        tried=(len(facts.domains), len(facts.domains)),
        blockers=tuple(Counter(one.message for one in explained.values() if one.message).most_common(_TEXTS)),
        shortages=of_members((pod.request for pod in pending), texts, cluster.table),
        lacks=lacks,
    )


def _verdict(facts: GangFacts, scheduled: int, explained: dict[str, Explanation], waits: bool) -> str:
    if scheduled and scheduled >= facts.minimum:
        return "Scheduled"
    if len(facts.pods) < facts.minimum:
        return "Gated"
    return "Unschedulable" if explained and waits else "Waiting"


def _message(explained: dict[str, Explanation]) -> str:
    """The message of the member that was tried first: those of the others say that it failed."""
    return min(explained.values(), key=lambda one: (not one.blockers, one.at or 0.0)).message
