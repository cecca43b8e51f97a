"""Joins core, cluster and families: plugins by name, profiles, schedulers, expected pods.

Reading order: `registry` (names to plugins), `presets` and `loading` (files to configurations), `assemble` (a
configuration to Profiles), `recorded` (that of a recorded decision), `schedulers` (Profiles to a Scheduler),
`expansion` and `foreign_owners` (objects to the pods that they would make), `asking` (questions to a scheduler).

Further modules: applying.
"""
