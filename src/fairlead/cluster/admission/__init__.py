"""What happens to an object between the request and the store: defaults, built-in admission, strategy, validation."""

from fairlead.cluster.admission.chain import Admission, default

__all__ = ["Admission", "default"]
