"""`python -m fairlead` is the command `fairlead`."""

from fairlead.cli.main import main

main()
