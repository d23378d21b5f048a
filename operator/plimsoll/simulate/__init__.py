"""What would have happened: one engine model in virtual time, and the same planning and control against a trace.

The engine model also drives the stand-in server of tests, so it reads no clock and draws nothing by itself.
"""
