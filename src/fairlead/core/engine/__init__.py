"""The scheduler: it takes changes in, keeps what waits, places pods and follows them to the API.

Reading order: scheduler (one step), intake (changes become events), queue/ (what waits), modes and pod_mode (who makes
attempts when), cycle/ (one attempt at a pod, and its binding), binding_driver and step_output (what moves bindings on,
and what a step writes), gangs/ (many pods together), explain/ (answers about them), guard with quarantine (what is done
when something raises), what_if/ (the same scheduler on a copy).

Further modules: options, turns, upkeep, watching.
"""
