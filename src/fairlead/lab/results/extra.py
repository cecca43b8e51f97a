"""need_extra: says what to install where tables cannot be written or read."""

from __future__ import annotations

from importlib import import_module

from fairlead.errors import ConfigError


def need_extra() -> None:
    """Raises ConfigError if a package of the extra `lab` is missing."""
    for name in ("pyarrow", "pandas"):
        try:
            import_module(name)
        except ImportError:
            raise ConfigError(
                f"results are tables of {name}, which is not installed", hint="pip install 'fairlead[lab]'"
            ) from None
