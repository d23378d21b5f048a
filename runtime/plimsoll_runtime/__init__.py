"""The engine's supervisor: starts the engine, follows it, reports what it measured and why it failed, and lets answers finish before the end.

Carried into any engine image that has Python 3.9 or later: the standard library is all there is to build on, so nothing
here imports what is not in it, and nothing of the operator either.
"""

VERSION = "0.1.0"
SCHEMA = 1
"""Version of the form in which the side port answers."""
