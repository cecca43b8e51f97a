"""Policies: kube-scheduler's plugins here, Volcano's, Koordinator's and the larger ones in packages.

Reading order: node_basics and taints (short filters), resources (filter and score), node_affinity, spread and
pod_affinity with their rows, scores and hints, volume_binding and its neighbours, preemption with victims, binder.
gang and gang_victims hold gangs together; golog, gosort and normalise reproduce arithmetic of Go.
"""
