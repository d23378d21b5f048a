"""From all that could run to what should: options weighed, the cheapest taken, the others told."""
