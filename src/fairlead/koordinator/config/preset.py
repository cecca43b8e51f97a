"""The configuration `koordinator`: Koordinator's own profile, and kube-scheduler's beside it for all other pods.

The profile is the one that Koordinator ships, with Reservation also under `reserve`, where the shipped file forgets it.
"""

from __future__ import annotations

from collections.abc import Mapping

KOORDINATOR_PRESET = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: koord-scheduler
  pluginConfig:
  - name: NodeResourcesFit
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: NodeResourcesFitArgs
      scoringStrategy:
        type: LeastAllocated
        resources:
        - name: cpu
          weight: 1
        - name: memory
          weight: 1
        - name: kubernetes.io/batch-cpu
          weight: 1
        - name: kubernetes.io/batch-memory
          weight: 1
  - name: LoadAwareScheduling
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: LoadAwareSchedulingArgs
      filterExpiredNodeMetrics: false
      nodeMetricExpirationSeconds: 300
      resourceWeights:
        cpu: 1
        memory: 1
      usageThresholds:
        cpu: 0
        memory: 0
      estimatedScalingFactors:
        cpu: 85
        memory: 70
  - name: ElasticQuota
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: ElasticQuotaArgs
      quotaGroupNamespace: koordinator-system
  plugins:
    preEnqueue:
      enabled:
      - name: Coscheduling
    preFilter:
      enabled:
      - name: SchedulingHint
      - name: Reservation
      - name: NodeNUMAResource
      - name: DeviceShare
      - name: Coscheduling
      - name: ElasticQuota
    filter:
      enabled:
      - name: LoadAwareScheduling
      - name: NodeNUMAResource
      - name: DeviceShare
      - name: Reservation
    postFilter:
      disabled:
      - name: '*'
      enabled:
      - name: Reservation
      - name: Coscheduling
      - name: ElasticQuota
      - name: DefaultPreemption
    preScore:
      enabled:
      - name: Reservation
      - name: Coscheduling
    score:
      enabled:
      - name: LoadAwareScheduling
        weight: 1
      - name: NodeNUMAResource
        weight: 1
      - name: DeviceShare
        weight: 1
      - name: Reservation
        weight: 5000
      - name: Coscheduling
        weight: 1
    reserve:
      enabled:
      - name: Reservation
      - name: LoadAwareScheduling
      - name: NodeNUMAResource
      - name: DeviceShare
      - name: Coscheduling
      - name: ElasticQuota
    permit:
      enabled:
      - name: Coscheduling
    preBind:
      enabled:
      - name: NodeNUMAResource
      - name: DeviceShare
      - name: Reservation
      - name: Coscheduling
      - name: DefaultPreBind
    bind:
      disabled:
      - name: '*'
      enabled:
      - name: Reservation
      - name: DefaultBinder
    postBind:
      enabled:
      - name: Coscheduling
- schedulerName: default-scheduler
"""

PRESETS: Mapping[str, str] = {"koordinator": KOORDINATOR_PRESET}
"""By the name that `--config` takes."""
