"""Extenders over HTTP: wire (one exchange), http_extender (the verbs that attempts and bindings use)."""
