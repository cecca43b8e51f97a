"""Resources: to be introduced."""
