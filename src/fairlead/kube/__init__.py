"""kube-scheduler: its plugins, its configuration file, and the replay of its recorded decisions.

Reading order: `nodes/` (short filters and scores), `resources/` (filter and score by amounts), `affinity/` and
`spread/` (between pods), `volumes/`, `claims/` (resource claims), `preemption/`, `gangs/`, `binder`; then `extenders/`
(over HTTP), `config/` and `replay/`. `gosort` and `scoring` reproduce arithmetic of Go.

Further modules: family, rows.
"""
