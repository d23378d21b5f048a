"""The operator's process: its start and end, which event wakes which deployment, and its servers. It decides nothing about deployments."""
