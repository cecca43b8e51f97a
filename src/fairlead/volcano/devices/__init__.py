"""deviceshare: Volcano's accelerator cards. The arithmetic is in state/cards and knows no rounds.

Read deviceshare (the plugin), device_pools (cards of one kind as tasks request them), then the kinds: numbered_gpus,
vgpus, ascend. registers and device_config read what nodes and the ConfigMap say; node_locks locks a node while a pod is
bound.

Modules: card_requests, card_sharing, card_table, holdings, mig.
"""
