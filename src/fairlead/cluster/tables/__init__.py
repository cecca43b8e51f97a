"""Server-side printing: lists as `meta.k8s.io/v1 Table`, with the columns that kubectl users know."""

from fairlead.cluster.tables.render import render_table

__all__ = ["render_table"]
