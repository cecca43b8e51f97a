"""Shared devices. Reading order: `request` (what a pod wants), `rows` (what nodes have and pods hold), `choice` (which
devices of one node), `gpus` (partitions and topology of GPUs), `plugin`.

Further modules: classes, judgements, lacks, numa_hints, templates.
"""
