"""Feature gates of Koordinator's scheduler, and the one by which its known bugs are kept."""

from __future__ import annotations

from collections.abc import Mapping

GATES = frozenset({
    "MultiQuotaTree", "ElasticQuotaIgnorePodOverhead", "ElasticQuotaIgnoreTerminatingPod",
    "ElasticQuotaImmediateIgnoreTerminatingPod", "ElasticQuotaGuaranteeUsage", "DisableDefaultQuota",
    "SupportParentQuotaSubmitPod",
})  # fmt: skip
WITHOUT_EFFECT: Mapping[str, str] = {
    "ElasticQuotaIgnorePodOverhead": "the overhead of a pod is counted in its quota",
    "ElasticQuotaIgnoreTerminatingPod": "a pod that is being deleted is counted until it is gone, unless "
    "ElasticQuotaImmediateIgnoreTerminatingPod is on",
    "SupportParentQuotaSubmitPod": "the webhook's rule stands: a quota that is a parent has no pods",
}
"""Gates that nothing reads, each with what happens whatever it says."""
COMPATIBLE = "KoordinatorCompatible"
"""On with `--koordinator-compatible`. It is no gate of the original, and `--feature-gates` does not know it."""
