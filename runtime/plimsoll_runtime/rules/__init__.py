"""What engines say before they end, and what each of it means: a table.

The first rule that any line fits is the answer, so what is most certain of its cause comes first and what only repeats it
("engine core initialization failed") last. The words are conditions' reasons; they do not change.
"""

from __future__ import annotations

from plimsoll_runtime.rules.command import COMMAND, SETTINGS
from plimsoll_runtime.rules.devices import DEVICES
from plimsoll_runtime.rules.ends import ENDS
from plimsoll_runtime.rules.image import IMAGE
from plimsoll_runtime.rules.memory import MEMORY
from plimsoll_runtime.rules.model import MODEL

RULES = (*COMMAND, *MEMORY, *DEVICES, *MODEL, *IMAGE, *SETTINGS, *ENDS)
