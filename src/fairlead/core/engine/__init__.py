"""The scheduler: it takes changes in, keeps what waits, places pods and follows them to the API.

Reading order: scheduler (one step), intake (changes become events), queue/ (what waits), cycle/ (one attempt at a pod,
and its binding), binding_driver and step_output (what moves bindings on, and what a step writes), gangs/ and rounds/
(many pods together), explain/ (answers about them), guard with quarantine (what is done when something raises),
optimistic (several schedulers over one state).
"""
