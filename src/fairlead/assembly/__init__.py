"""Assembly: to be introduced."""
