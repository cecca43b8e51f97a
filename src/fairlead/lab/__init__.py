"""The laboratory: scenarios on virtual time, and experiments of the literature on the scheduler's own table.

Reading order: `scenario/` says what an experiment consists of, `play/` plays it with the scheduler, Store, kubelets and
controllers of a cluster, `results/` has its tables, and `load` gives them as DataFrames. Of the literature, `omega/`
has several schedulers on one cell, `queues/` batch policies on a pool of GPUs, `fragmentation/` the placement policies
of the FGD paper, and `reference/` holds all of them to recorded runs of the original programs.

Further modules: learning, report.
"""

from __future__ import annotations

from fairlead.lab.results.loading import LabResults, load

__all__ = ["LabResults", "load"]
