"""What is told: conditions, status and events as functions of what is wanted and what is seen.

The words are those of the decisions themselves; this room only chooses which condition carries them.
"""
