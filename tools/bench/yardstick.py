"""How fast is this machine? Milliseconds of CPU say as much of it as of the code, so aims in ms need a yardstick.

It is the CPU time of `import openai`: known for the machine that the design's figures were taken on, and taken again in
each run. Times are divided by the ratio where they are held against an aim or turned into money.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys

YARDSTICK_MS = 616  # median on the machine whose import times the design goes by
_RUNS = 7


def slower() -> float:
    """How many times slower this machine is now."""
    spent = []
    for _ in range(_RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", "import openai"], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000)
    return statistics.median(spent) / YARDSTICK_MS
