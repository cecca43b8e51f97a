"""Builders for storage: classes, volumes and claims; pods that use them."""

from __future__ import annotations

from typing import Any, Self

from fairlead.core.model import kinds
from fairlead.testing.builders import Builder, PodBuilder, pod

NO_PROVISIONER = "kubernetes.io/no-provisioner"


class StorageClassBuilder(Builder):
    """A StorageClass."""

    kind = kinds.STORAGE_CLASS

    def __init__(self, name: str, provisioner: str) -> None:
        super().__init__(name, "")
        self._doc["provisioner"] = provisioner

    def waiting(self) -> Self:
        """Claims wait for the first pod that uses them."""
        return self._set("volumeBindingMode", "WaitForFirstConsumer")

    def keeping(self) -> Self:
        """Volumes stay when their claims go."""
        return self._set("reclaimPolicy", "Retain")

    def by_default(self) -> Self:
        """Of claims that name no class."""
        return self.annotated({"storageclass.kubernetes.io/is-default-class": "true"})


class ClaimBuilder(Builder):
    """A PersistentVolumeClaim."""

    kind = kinds.PERSISTENT_VOLUME_CLAIM

    def __init__(self, name: str, storage: str, namespace: str = "default") -> None:
        super().__init__(name, namespace)
        self._doc["spec"] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}

    def of_class(self, name: str) -> Self:
        """Of this StorageClass."""
        return self.having(storageClassName=name)


class VolumeBuilder(Builder):
    """A PersistentVolume."""

    kind = kinds.PERSISTENT_VOLUME

    def __init__(self, name: str, storage: str) -> None:
        super().__init__(name, "")
        self._doc["spec"] = {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": storage},
            "hostPath": {"path": "/disk"},
        }

    def of_class(self, name: str) -> Self:
        """Of this StorageClass."""
        return self.having(storageClassName=name)

    def deleted_when_released(self) -> Self:
        """Deleted when its claim is gone."""
        return self.having(persistentVolumeReclaimPolicy="Delete")


def storage_class(name: str, provisioner: str = "disks.example.com") -> StorageClassBuilder:
    """A StorageClass whose volumes are made at once, unless set otherwise."""
    return StorageClassBuilder(name, provisioner)


def claim(name: str, storage: str = "1Gi", namespace: str = "default") -> ClaimBuilder:
    """A claim for a volume of this size."""
    return ClaimBuilder(name, storage, namespace)


def volume(name: str, storage: str = "1Gi") -> VolumeBuilder:
    """A volume of this size."""
    return VolumeBuilder(name, storage)


def pod_using(name: str, *claims: str) -> PodBuilder:
    """A pod with a volume for each of these claims."""
    return pod(name).having(
        volumes=[{"name": f"v-{one}", "persistentVolumeClaim": {"claimName": one}} for one in claims]
    )


def pod_with_ephemeral(name: str, storage: str, *, storage_class: str) -> PodBuilder:
    """A pod with a volume `scratch` that is made with it and goes with it."""
    spec: dict[str, Any] = ClaimBuilder("scratch", storage).of_class(storage_class).doc()["spec"]
    return pod(name).having(volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}])
