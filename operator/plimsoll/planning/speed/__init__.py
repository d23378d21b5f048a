"""How fast a layout answers: work over peaks, with constants that measurement gave."""
