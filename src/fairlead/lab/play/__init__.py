"""Playing a scenario: the scheduler, the Store, the kubelets and the controllers on virtual time.

Reading order: `run.py` plays one run; `recorder.py` follows its pods; `sampler.py` looks at the cluster from time to
time; `experiment.py` plays many runs on several cores.

Further modules: gang_waits, node_failures, racing.
"""
