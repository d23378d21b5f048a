"""The door to metrics: a Prometheus asked for the whole fleet at once, or the pods themselves where there is none.

What comes in is put into Plimsoll's own words and nothing more; what it means is decided elsewhere.
"""
