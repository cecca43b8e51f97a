"""A filter and a score in ten lines each: no pods on nodes in maintenance, and rather on cool nodes.

fairlead scheduler --config examples/maintenance.yaml
"""

from fairlead import node_filter, node_score


@node_filter(reason="node(s) in maintenance", wakes_on="node-labels")
def not_in_maintenance(pod, node):
    return node.labels.get("maintenance") != "true"


@node_score(weight=2)
def cool_nodes(pod, node):
    return 100 - float(node.annotations.get("temperature", 50))
