"""What should change: signals to replicas, signals to a retune, a canary's judge, the shift of replicas between sets.

Pure functions of frozen values: time, samples and memory are handed in, and each decision carries its reasons.
"""
