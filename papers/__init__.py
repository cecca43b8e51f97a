"""Papers: to be introduced."""
