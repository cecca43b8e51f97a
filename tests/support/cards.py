"""Annotations, amounts, requests and a configuration of cards, as Volcano's deviceshare reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

REGISTER = "volcano.sh/node-vgpu-register"
OFFERS = {"volcano.sh/vgpu-number": "20", "volcano.sh/vgpu-memory": "32000", "volcano.sh/vgpu-cores": "200"}
A100 = {
    "nvidia": {
        "resourceCountName": "volcano.sh/vgpu-number",
        "resourceMemoryName": "volcano.sh/vgpu-memory",
        "resourceCoreName": "volcano.sh/vgpu-cores",
        "knownMigGeometries": [
            {
                "models": ["A100-SXM4-40GB"],
                "allowedGeometries": [
                    {"group": "group1", "geometries": [{"name": "1g.5gb", "memory": 5120, "count": 7}]},
                    {
                        "group": "group2",
                        "geometries": [
                            {"name": "2g.10gb", "memory": 10240, "count": 3},
                            {"name": "1g.5gb", "memory": 5120, "count": 1},
                        ],
                    },
                ],
            }
        ],
    }
}
"""Volcano's device configuration for vGPUs, with an A100 that can be cut in two ways."""


def containers(*several: Mapping[str, str]) -> list[dict[str, Any]]:
    """Containers with these requests, each a limit too."""
    return [
        {"name": f"c{at}", "resources": {"requests": dict(one), "limits": dict(one)}} for at, one in enumerate(several)
    ]
