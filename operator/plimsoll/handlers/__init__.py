"""Which event wakes which deployment, and the life of the operator's process around it. No decisions."""
