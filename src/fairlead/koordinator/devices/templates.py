"""Templates of shared GPUs: some models give shares only in certain sizes, which a ConfigMap lists by name.

The ConfigMap has, for each vendor and model, templates by name with the amounts of each. A pod that shares a GPU and
requests a resource that is given by template must request exactly what one template has; the name of the template is
written beside the GPU that the pod gets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlead.core.model import kinds
from fairlead.core.model.flow import Watch
from fairlead.core.model.quantity import read_quantity, to_units
from fairlead.core.model.reasons import Status, unresolvable
from fairlead.errors import FairleadError
from fairlead.koordinator.records.cards import MODEL, VENDOR

if TYPE_CHECKING:
    from fairlead.core.state.cluster import Cluster
    from fairlead.koordinator.records.cards import Amounts

NO_TEMPLATE = "no matched GPU shared resource template"
_KEY = "data.yaml"

Templates = Mapping[str, Mapping[str, "Amounts"]]
"""Amounts by `vendor-model` and name of the template."""


def _reads_nothing(text: str) -> Any:
    return {}


@dataclass(frozen=True, slots=True)
class TemplateRules:
    """The argument gpuSharedResourceTemplatesConfig: the ConfigMap, and the resources that are given by template.
    `read_yaml` reads the text of the ConfigMap."""

    namespace: str = "koordinator-system"
    name: str = "gpu-shared-resource-templates"
    matched: tuple[str, ...] = ("huawei.com/npu-core",)
    read_yaml: Callable[[str], Any] = _reads_nothing

    @property
    def watch(self) -> Watch:
        return Watch(kinds.CONFIG_MAP, namespace=self.namespace, optional=True)


class TemplateIndex:
    """The templates of a cluster, read anew when the ConfigMap has changed."""

    def __init__(self, rules: TemplateRules) -> None:
        self._rules = rules
        self._read: tuple[str, Templates] = ("", {})

    def candidates(self, cluster: Cluster, each: Amounts) -> Mapping[str, tuple[str, ...]] | Status | None:
        """By `vendor-model` the templates that have exactly these amounts; None if nothing of them is given by
        template, a refusal if there is none."""
        if not set(self._rules.matched).intersection(each):
            return None
        found = {
            model: names
            for model, templates in self._templates(cluster).items()
            if (names := tuple(name for name, amounts in templates.items() if amounts == each))
        }
        return found or unresolvable(NO_TEMPLATE)

    def _templates(self, cluster: Cluster) -> Templates:
        """What the ConfigMap lists. One that cannot be read changes nothing; one that is gone lists nothing."""
        found: Mapping[str, str] | None
        found = cluster.object_index.of(kinds.CONFIG_MAP).get(f"{self._rules.namespace}/{self._rules.name}")
        if found is None:
            self._read = ("", {})
        elif found.get(_KEY, "") != self._read[0]:
            text = found.get(_KEY, "")
            try:
                self._read = (text, _parsed(self._rules.read_yaml(text)))
            except (FairleadError, ValueError, AttributeError, TypeError):
                self._read = (text, self._read[1])
        return self._read[1]


def _parsed(document: Any) -> Templates:
    return {
        str(model): {
            str(name): {
                resource: to_units(resource, read_quantity(str(amount))) for resource, amount in amounts.items()
            }
            for name, amounts in (templates or {}).items()
        }
        for model, templates in (document or {}).items()
    }


def template_for(labels: Mapping[str, str], candidates: Mapping[str, tuple[str, ...]]) -> str | Status:
    """The template by which a node with these labels gives a share; empty if several would do."""
    names = candidates.get(f"{labels.get(VENDOR, '')}-{labels.get(MODEL, '')}", ())
    if not names:
        return unresolvable(NO_TEMPLATE)
    return names[0] if len(names) == 1 else ""
