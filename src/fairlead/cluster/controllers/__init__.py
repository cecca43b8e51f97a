"""Everything that acts except the scheduler: workloads, simulated kubelets, volumes, quotas, Volcano's Jobs.

Reading order: workqueue (Reconciler, the frame that nearly all are written in) and writes (what they send), then any
controller, such as workloads/deployment; housekeeping (the list of all, and the rules for one more), controller_group
(many controllers as one), fresh_view (reading one's own last write).
"""
