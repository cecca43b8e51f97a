"""The FGD paper's experiment: pods of a trace arrive at a GPU cluster one after the other, and none ever leaves.

Reading order: `trace.py` reads nodes and pods and makes arrivals from them, `policies.py` has a profile for each
policy, `run.py` places pod after pod and measures what is allocated and fragmented.
"""
