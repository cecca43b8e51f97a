"""Records: to be introduced."""
