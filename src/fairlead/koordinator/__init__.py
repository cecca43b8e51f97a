"""The plugins of Koordinator's scheduler, as columns over the node table.

Reading order: `small` (fit plus, scarce resources, scheduling hints), `load/`, `numa/`, `devices/`, `quotas/`,
`reservations/`, `gangs/`. Each package keeps its own sums per row and brings them up to date from the table's touch
logs; none of them has a model of nodes besides the table.

Further modules: admission, agents, config, descheduling, family, gates, given, grants, kinds, pod_annotations,
read_kinds, records, replay, request_scores, rows, scoring, sent_statuses, what_if.
"""
