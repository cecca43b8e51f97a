"""What commands share: `terminal` and `logs` (output), `cluster_access` and `joined_cluster` (connections),
`explanations` (questions to schedulers), `leading` (the lease), `gang_text` (a group for people), `roles/` (rights).
Commands of families import this package.

Modules: command_group, port_file, scheduler_search.
"""
