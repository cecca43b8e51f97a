"""Config: to be introduced."""
