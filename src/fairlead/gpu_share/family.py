"""The record of shared GPUs: what this family brings to the core, the cluster and the commands."""

from __future__ import annotations

from fairlead.core.family import Family, PluginEntry

FAMILY = Family(
    "gpu_share",
    extends=("kube",),
    rows="fairlead.gpu_share.rows:ROWS",
    plugins={
        "Open-Gpu-Share": PluginEntry("fairlead.gpu_share.factories:open_gpu_share"),
        "FGDScore": PluginEntry("fairlead.gpu_share.factories:fgd_score"),
        "ScarcityScore": PluginEntry("fairlead.gpu_share.factories:scarcity_score"),
        "BestFitScore": PluginEntry("fairlead.gpu_share.packing:BestFitScore"),
        "DotProductScore": PluginEntry("fairlead.gpu_share.packing:DotProductScore"),
        "GpuPackingScore": PluginEntry("fairlead.gpu_share.packing:GpuPackingScore"),
        "GpuClusteringScore": PluginEntry("fairlead.gpu_share.packing:GpuClusteringScore"),
    },
)
