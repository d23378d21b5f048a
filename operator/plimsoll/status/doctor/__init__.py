"""What is wrong with a cluster and with the deployments in it, found from one look at them.

Each check is a function from `Examined` to findings. Where conditions say the same, both take the words from the same place.
"""
