"""Configurations that come with fairlead, as their files would read: Volcano's own two, and kube-batch's.

`default` is what Volcano runs without a file and `shipped` what its installer puts in the ConfigMap. `kube-batch` is
its ancestor's sample: four actions and seven plugins, with the filters and scores that it had, and without `enqueue`,
so that jobs are let in as they are allocated. A queue is asked only whether it is overused, before each of its jobs,
and not for each pod: a gang that needs more than its queue deserves starts, and capabilities limit nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

_DEFAULT = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""

_SHIPPED = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""

_KUBE_BATCH = """\
actions: "reclaim, allocate, backfill, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: drf
  - name: predicates
    arguments:
      predicate.NodeVolumeLimitsEnable: false
      predicate.VolumeZoneEnable: false
      predicate.PodTopologySpreadEnable: false
      predicate.VolumeBindingEnable: false
  - name: proportion
    enabledAllocatable: false
  - name: nodeorder
    arguments:
      nodeaffinity.weight: 1
      podaffinity.weight: 1
      tainttoleration.weight: 0
      imagelocality.weight: 0
      podtopologyspread.weight: 0
"""

PRESETS: Mapping[str, str] = {"default": _DEFAULT, "shipped": _SHIPPED, "kube-batch": _KUBE_BATCH}
