"""Koordinator's admission: which of its webhooks' rules the server applies to pods and ElasticQuotas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fairlead.cluster.admission.hooks import KindHooks, when_created
from fairlead.core.model import kinds as k
from fairlead.koordinator.admission.pods import QuotaOfPods, admit_pod
from fairlead.koordinator.admission.profiles import admit_profile, with_profiles
from fairlead.koordinator.kinds import KOORD_COLOCATION_PROFILE, KOORD_ELASTIC_QUOTA
from fairlead.koordinator.quotas import admission as quotas
from fairlead.koordinator.quotas.pod_admission import with_nodes_of_tree

if TYPE_CHECKING:
    from fairlead.core.model.kinds import Kind


def hooks(settings: Sequence[object]) -> Mapping[Kind, KindHooks]:
    of_pods = QuotaOfPods()
    return {
        k.POD: KindHooks(
            rewrite=lambda view, new: with_nodes_of_tree(view, with_profiles(view, new)),
            admit=lambda view, spoken, new, old: admit_pod(view, of_pods, new, old),
        ),
        KOORD_COLOCATION_PROFILE: KindHooks(admit=lambda view, spoken, new, old: admit_profile(new)),
        KOORD_ELASTIC_QUOTA: KindHooks(
            mutate=when_created(quotas.mutate_quota),
            admit=lambda view, spoken, new, old: quotas.admit_quota(view, new, old),
            release=quotas.admit_deletion,
        ),
    }
