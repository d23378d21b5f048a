"""What running engines teach: memory from their starts, and speed from ramps that somebody hands in."""
