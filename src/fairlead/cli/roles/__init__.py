"""What fairlead may do on a cluster: the table of grants, the roles made from it, and the question what is lacking.

Read `grants` (one row per verb and resource), then `ways` (which rows a way of running needs), `documents` (roles for
the API server), `command` (`fairlead roles`) and `review` (what a starting process says that it lacks).
"""
