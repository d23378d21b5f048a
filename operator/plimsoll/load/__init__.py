"""Load on an endpoint: requests as many users would send them, and what those users would have seen.

The only room that speaks to model endpoints. It knows no Kubernetes and no plans: whoever compares a measurement with a
plan hands in the plan's figures.
"""
