"""Server-side printing: lists as `meta.k8s.io/v1 Table`, with the columns that kubectl users know.

Modules: core, custom, others, pods, render, workloads.
"""

from fairlead.cluster.tables.render import render_table

__all__ = ["render_table"]
