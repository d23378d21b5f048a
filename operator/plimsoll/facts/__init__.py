"""What is known? GPUs, nodes, models, engines and what was learned: frozen values, read from data files or handed in."""
