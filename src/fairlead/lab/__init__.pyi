"""The public names as type checkers see them; __init__.py imports each when it is first used."""

from fairlead.lab.playing import experiment as experiment
from fairlead.lab.playing import run as run
from fairlead.lab.results.loading import LabResults as LabResults
from fairlead.lab.results.loading import load as load

__all__ = ["LabResults", "experiment", "load", "run"]
