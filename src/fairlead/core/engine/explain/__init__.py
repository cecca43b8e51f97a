"""Answers to "why is it pending?": built from the refusals of the last attempt and the state of the scheduler.

Reading order: answers (the entry points), pod and waiting_pod, gang (groups of kube profiles), group (Volcano's
PodGroups), queue (what a queue may have, has and has left),
decisions (the log that several may read), figures (numbers for metrics).
"""
