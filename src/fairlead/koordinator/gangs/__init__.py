"""Gangs that are tried pod by pod, as Koordinator does. Reading order: `index` (which gangs there are, and the attempt
that is under way), `network` (a plan by the layers of the network), `plugin`.

Further modules: preemption, status.
"""
