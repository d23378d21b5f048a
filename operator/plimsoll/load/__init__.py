"""Puts load on an endpoint: sends requests as many users would, and measures what those users would have seen.

It knows nothing of Kubernetes or of plans: whoever compares a measurement with a plan hands in the plan's figures.
"""
