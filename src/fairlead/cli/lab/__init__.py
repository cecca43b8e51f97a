"""`fairlead lab`: the laboratory's commands.

Modules: command, racing, scenarios.
"""
