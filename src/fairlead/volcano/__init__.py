"""Volcano: its scheduler, its controllers, its configuration and its command line.

Reading order: `records/`, `mode` (the scheduler's way to rounds), `rounds/` (sessions and actions), `plugins/`,
`queues/`, `devices/`, `topology/`, `numa/` (tier plugins by subject), `jobs/` with `flows/` and `sharding/`
(controllers), `admission_repairs`, `config/`, `explain/`, `metrics`, `cli/` and `vcctl/` (commands), `replay/`.

Further modules: admission, controller_settings, family, grants, kinds, read_kinds, rows, what_if.
"""
