"""Volcano's objects as records, which every other directory of the family may import.

Reading order: `amounts` (resources), `tasks`, `queues`, `topology` (HyperNodes), `keys` and `ring`, `quirks` (what is
fixed by default), `queue_explanation`, `round_figures`.

Further modules: groups.
"""
