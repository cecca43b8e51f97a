"""`fairlead lab`: the laboratory's commands."""
