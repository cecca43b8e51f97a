"""The laboratory: scenarios on virtual time, and experiments of the literature on the scheduler's own table.

Reading order: `scenario/` says what an experiment consists of, `play/` plays it with the scheduler, Store, kubelets and
controllers of a cluster, `results/` has its tables, and `load` gives them as DataFrames. `playing.py` has `run` and
`experiment`, which do all of it. Of the literature, `omega/` has several schedulers on one cell.

The public names are imported when first used, so that the parts of the laboratory can be imported without its extra.

Further modules: learning, report.
"""

from fairlead.lazy_names import lazy_names

_HOMES = {
    "LabResults": "results.loading",
    "experiment": "playing",
    "load": "results.loading",
    "run": "playing",
}
__all__ = [*_HOMES]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
