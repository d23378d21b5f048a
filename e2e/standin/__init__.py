"""A stand-in for vLLM: its command line, its API and its metrics around the engine model of `plimsoll.simulate`, in real time.

For tests at a scale that no machine runs real engines at: `fleet.Fleet` holds many in one process, `python -m standin` is one. How far
it is from the real engine is measured by `benchmarks/standin_fidelity.py`; what is said with it should name those figures.
"""
