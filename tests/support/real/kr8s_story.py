"""What users of kr8s do: create, wait, scale, label, read and delete. Run with a namespace and a kubeconfig."""

from __future__ import annotations

import asyncio
import sys

import kr8s.asyncio
from kr8s.asyncio.objects import Deployment, Pod


async def use_kr8s(namespace: str, kubeconfig: str) -> None:
    api = await kr8s.asyncio.api(kubeconfig=kubeconfig, namespace=namespace)
    container = {"name": "main", "image": "example.com/app:1"}
    template = {"metadata": {"labels": {"app": "k"}}, "spec": {"containers": [container]}}
    deployment = await Deployment(
        {
            "metadata": {"name": "k", "namespace": namespace},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "k"}}, "template": template},
        },
        api=api,
    )
    await deployment.create()
    async with asyncio.timeout(180):
        while not await deployment.ready():  # noqa: ASYNC110 (another process)
            await asyncio.sleep(0.2)
        await deployment.scale(3)
    pods = [pod async for pod in api.get("pods", namespace=namespace, label_selector="app=k")]
    assert len(pods) >= 1
    single = await Pod(
        {"metadata": {"name": "solo", "namespace": namespace}, "spec": {"containers": [container]}}, api=api
    )
    await single.create()
    await single.wait("condition=Ready", timeout=60)
    await single.label(tier="front")
    assert (await Pod.get("solo", namespace=namespace, api=api)).labels["tier"] == "front"
    await single.delete()
    await deployment.delete()
    print("done")


if __name__ == "__main__":
    asyncio.run(use_kr8s(*sys.argv[1:]))
