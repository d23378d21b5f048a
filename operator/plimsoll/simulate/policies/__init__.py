"""How many replicas: Plimsoll's own control law, the plain one that it grew from, what the field runs, and an oracle.

One file a family, one list of all. Each sees what it would see in a cluster: its own replicas and scrapes. What a baseline does is its published rule, told in
its module; its parameters are arguments, so that a benchmark can tune them.
"""
