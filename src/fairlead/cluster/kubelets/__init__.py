"""Simulated nodes, and what happens to pods when a node fails.

Reading order: simulated_nodes, kubelet (all simulated kubelets as one controller), pod_script (annotations that say how
a pod behaves), pod_status, node_lifecycle (taints of silent nodes), pod_eviction.

Further modules: gang_work, refused_pods.
"""
