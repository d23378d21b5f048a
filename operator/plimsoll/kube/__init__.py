"""The door to Kubernetes: what is read from a cluster and written to it. It decides nothing."""
