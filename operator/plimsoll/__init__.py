"""Plimsoll draws the load line of a GPU fleet: it sizes, places and runs LLM deployments on Kubernetes.

Only the version lives here. Importing the package pulls in nothing, so that every room can be used alone.
"""

__version__ = "0.1.0"
