"""The control loop: every few seconds one look at the metrics of the whole fleet, and a decision for each deployment.

What it decides it hands to turns as a `direction`, and they do it; turns know nothing of the loop.
"""
