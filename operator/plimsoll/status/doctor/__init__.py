"""What is wrong with a cluster and with deployments in it, as functions of one look at them.

Each check is one function from `Examined` to findings; words that conditions use as well come from where those get them.
"""
