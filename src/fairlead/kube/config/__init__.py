"""KubeSchedulerConfiguration and the Policy before it, with all their errors.

Reading order: `kube` (entry), `document`, `draft` and `build` (profiles), `shapes` and `records`, `validation`,
`field_errors`; `plugin_args` with `plugin_args_validation`; `plugin_sets`, `finish`, `factories`, `gates`, `extenders`;
`policy` with `policy_tables`.

Further modules: without_effect.
"""
