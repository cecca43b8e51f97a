"""DefaultBinder: binds a pod by writing its Binding. A refusal sends the pod back to the queue; it is not retried here.

Annotations that another plugin noted under this plugin's name in the cycle are sent with the Binding, which the API
copies to the pod.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.framework.plugin import Plugin
from fairlead.core.model import kinds
from fairlead.core.model.flow import Verb, Write

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.model.flow import Doc


class DefaultBinder(Plugin):
    name = "DefaultBinder"

    def bind(self, cycle: Cycle, row: int) -> Write:
        pod = cycle.pod
        metadata: Doc = {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid}
        if annotations := cycle.notes.get(self.name):
            metadata["annotations"] = annotations
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": cycle.cluster.table.name(row)},
        }
        return Write(Verb.CREATE, kinds.POD, pod.namespace, pod.name, body, subresource="binding", conforms=True)
