"""Shared GPUs and Ascend cards, as Volcano's deviceshare plugin gives them out.

Reading order: deviceshare (the plugin), device_pools (what a node has and who holds it), cards and card_requests,
vgpus, mig, numbered_gpus and ascend (one module per way of sharing), node_locks, device_config.
"""
