"""The command `plimsoll`, also found as `kubectl plimsoll`: reads files, calls the packages below it, prints what they say.

No decision is made here. One module a command; `inputs` reads, `drawing` and `report` print, `main` holds them together.
"""
