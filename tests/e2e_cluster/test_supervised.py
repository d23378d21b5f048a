"""The tests of the supervisor look for the engine's processes while its threads come and go: each answer has one of its own."""

import subprocess
import sys

from supervised import descendants

COMES_AND_GOES = """
import subprocess, threading
kept = subprocess.Popen(["sleep", "600"])
print(kept.pid, flush=True)
while True:
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
"""
LOOKS = 1000
"""Of which one in forty meets a thread that ends."""


def test_a_family_is_found_while_threads_of_it_end():
    argv = [sys.executable, "-c", COMES_AND_GOES]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            families = [descendants(parent.pid) for _ in range(LOOKS)]
        finally:
            subprocess.run(["kill", "-9", str(parent.pid), str(child)], check=True)
    assert {pid for family in families for pid in family} == {child}
    assert all(name in ("", "sleep 600 ") for family in families for name in family.values())


def test_of_a_process_that_has_ended_nothing_is_left():
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
        assert descendants(ended.pid) == {}
