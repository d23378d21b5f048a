"""Conditions, status and events of a deployment, as functions of what is wanted and what is seen.

The words are mostly those of the decisions themselves; here it is only chosen which condition has them.
"""
