"""What reproduces published tables or the runs of other simulators: README.md says what each package holds."""
