"""fairlead: a cluster scheduler that speaks kube-scheduler and Volcano over one shared, columnar state."""

__version__ = "0.1.0"
