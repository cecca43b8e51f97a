"""Placement of pods that share GPUs, or take whole ones: the policies of the FGD paper (Weng et al., ATC 2023).

Reading order: gpu_share/gpu_shares.py has what is free and what pods request; `share.py` refuses nodes and gives out
GPUs; `packing.py` has four simple scores; `fragmentation.py` computes how much of a node's idle GPU no typical pod can
use, and `fgd.py` scores by it.

Further modules: factories, family, rows, scarcity.
"""
