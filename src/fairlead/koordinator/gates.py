"""Feature gates of Koordinator's scheduler that are read, and the one by which its known bugs are kept."""

from __future__ import annotations

GATES = frozenset({
    "MultiQuotaTree", "ElasticQuotaIgnorePodOverhead", "ElasticQuotaIgnoreTerminatingPod",
    "ElasticQuotaImmediateIgnoreTerminatingPod", "ElasticQuotaGuaranteeUsage", "DisableDefaultQuota",
    "SupportParentQuotaSubmitPod",
})  # fmt: skip
COMPATIBLE = "KoordinatorCompatible"
"""On with `--koordinator-compatible`. It is no gate of the original, and `--feature-gates` does not know it."""
