"""Koordinator's objects as records, and what its labels and annotations say of pods and nodes.

Reading order: `bands` (priority bands and classes of service), `node_metrics`, `cpu_topology`, `cards` (Device objects
and what pods ask of them), `quotas`, `gangs`, `reservations`, `network`.

Further modules: colocation, node_reservation, overcommit, quirks.
"""
