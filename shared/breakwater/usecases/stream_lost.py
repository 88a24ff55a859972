"""What is left of a stream whose holder died, where nobody can go on with it?

What was shown stays shown: the log is closed, so that a holder who was only slow adds nothing to it, and what stands
in it is the partial answer, with an estimate of what it cost.
"""

from __future__ import annotations

from dataclasses import replace

from breakwater.domain.job import Job
from breakwater.domain.results import Refused
from breakwater.domain.signals import Signal
from breakwater.domain.states import Visibility
from breakwater.usecases.bodies import read_input
from breakwater.usecases.deps import Deps
from breakwater.usecases.stream_cost import partial_of
from breakwater.usecases.stream_log import close, collected


def shown_so_far(deps: Deps, job: Job, signal: Signal) -> Refused:
    """The outcome of an execution of which nothing is known but what readers saw."""
    close(deps, job)
    log = collected(deps, job)
    partial = partial_of(log.answer, None, None, read_input(deps, job) or {}) if log is not None else None
    return Refused(signal=replace(signal, visibility_state=Visibility.PARTIAL_OUTPUT), partial=partial)
