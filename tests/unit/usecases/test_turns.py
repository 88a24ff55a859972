"""Fair at any depth: who waits with nothing in use has a turn within as many releases as there are owners."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from breakwater.domain.errors import StoreUnavailable
from breakwater.domain.limits import of_one_owner, paused_scope
from breakwater.domain.release import turn_name
from breakwater.domain.slots import Slot
from breakwater.domain.states import Reason
from breakwater.domain.switches import Switch, SwitchName
from breakwater.usecases import releaser
from breakwater.usecases.releaser import release
from tests.support.builders import NOW, make_job
from tests.support.limited import limited
from tests.support.world import World

SCOPE = "route:plain"


class Line:
    """Waiters of one route, what is in use of it, and who was woken, by owner."""

    def __init__(self, limit, floods, scope=SCOPE):
        self.scope, self.limit = scope, limit
        self.calls = []
        self.world = World(routes=limited(concurrency=limit), hook=self._called)
        self.woken = []
        for owner, (depth, since) in floods.items():
            for n in range(depth):
                self.join(owner, since + n)

    def _called(self, name, when):
        if when == "before":
            self.calls.append(name)

    def join(self, owner, rank):
        """One more in line."""
        waiting = {"waiting_scope": self.scope, "waiting_rank": NOW + rank, "recheck_at": NOW + 900_000}
        job = make_job(owner_key=owner, reason=Reason.NO_CAPACITY, created_at=NOW + rank, **waiting)
        return self.world.store.create(job, NOW).job

    def waiting(self):
        """How many each owner has in line."""
        jobs = [self.world.store.get(pk[4:]) for pk, sk in self.world.store.items if sk == "META" and pk[:4] == "JOB#"]
        return [one.owner_key for one in jobs if one.waiting_scope == self.scope]

    def hold(self, owner, n):
        """A number in use, until it is given back."""
        self.world.store.take_slot(
            Slot(
                scope=self.scope,
                n=n,
                job_id="",
                epoch=1,
                taken_at=NOW,
                verify_at=NOW + 10**9,
                owner=turn_name(owner),
            )
        )

    def release(self, just_served=None):
        """Whom one release wakes; they take their numbers at once."""
        before = {pk for pk, one in self.world.store.items.items() if "woken_for" in one}
        release(self.world.deps, self.scope, just_served)
        woken = [pk for pk, one in self.world.store.items.items() if "woken_for" in one and pk not in before]
        owners = [self.world.store.get(pk[4:]).owner_key for pk, _ in woken]
        for owner in owners:
            free = next(n for n in range(self.limit) if (self.scope, n) not in self.world.store.taken)
            self.hold(owner, free)
        return owners


FLOODS = st.dictionaries(
    st.sampled_from([f"owner-{n}" for n in range(7)]),
    st.tuples(st.integers(1, 9), st.integers(0, 100)),
    min_size=1,
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(limit=st.integers(1, 3), floods=FLOODS, data=st.data())
def test_everybody_has_a_turn_within_as_many_releases_as_there_are_owners(monkeypatch, limit, floods, data):
    """Any floods, of any age, any number given back in any order: with nothing in use nobody waits for longer."""
    monkeypatch.setattr(releaser, "LINE", 5)
    monkeypatch.setattr(releaser, "PAGE", 2)
    line = Line(limit, floods)
    for n in range(limit):
        line.hold("holder", n)
    since = dict.fromkeys(floods, 0)
    while line.waiting():
        n = data.draw(st.integers(0, limit - 1), label="given back")
        held = line.world.store.taken.pop((SCOPE, n))
        just = next((one for one in ("holder", *floods) if turn_name(one) == held.owner), None)

        (woken,) = line.release(just)

        using = {slot.owner for slot in line.world.store.taken.values()}
        hungry = {one for one in line.waiting() if turn_name(one) not in using and one != just}
        since = {one: since.get(one, 0) + 1 if one in hungry else 0 for one in floods}
        assert woken in floods
        assert max(since.values()) < len(floods)


def test_thousands_of_one_owner_hide_nobody():
    """Behind a flood that came first, one job each of five others goes next; for a handful of requests."""
    others = [f"late-{n}" for n in range(5)]
    line = Line(1, {"flood": (2_000, 0), **dict.fromkeys(others, (1, 50_000))})
    got = []
    for _ in range(6):
        line.calls.clear()
        got += line.release(got[-1] if got else None)
        line.world.store.taken.clear()

        assert len(line.calls) <= 14, line.calls
        assert line.calls.count("waiters_by_owner") <= 4

    assert sorted(got) == ["flood", *others]


def test_three_owners_with_one_place_take_turns():
    """By age alone the two older floods would go on between them."""
    line = Line(1, {"a": (9, 0), "b": (9, 100), "c": (9, 200)})
    got = []
    for _ in range(9):
        got += line.release(got[-1] if got else None)
        line.world.store.taken.clear()

    assert sorted(got[:3]) == ["a", "b", "c"]
    assert got == got[:3] * 3


def test_each_owners_jobs_leave_by_rank():
    """Priority and age order the jobs of one owner."""
    line = Line(1, {})
    late, early = line.join("a", 20), line.join("a", 10)
    line.join("b", 15)
    order = []
    for _ in range(3):
        line.release()
        line.world.store.taken.clear()
        order += [
            one.job_id for one in (early, late) if line.world.job(one.job_id).woken_for and one.job_id not in order
        ]

    assert order == [early.job_id, late.job_id]


def test_where_all_have_room_nobody_is_asked_whose_turn_it_is():
    """A short line costs no memory: one read of it, and it leaves by rank."""
    line = Line(5, {"a": (2, 10), "b": (2, 0)})
    line.calls.clear()

    assert sorted(line.release()) == ["a", "a", "b", "b"]

    assert not {"latest", "put_latest"} & set(line.calls)
    assert line.calls.count("waiters_by_owner") == 1


@pytest.mark.parametrize(("scope", "one"), [("owner:acme", True), ("route:plain|owner:a%3Ab", True), (SCOPE, False)])
def test_a_scope_of_one_owner_has_no_turns(scope, one):
    """Where all are the same owner's, the line itself is the order."""
    assert of_one_owner(scope) is one


def test_a_long_line_of_one_owner_is_read_once():
    """The owner's own limit: by rank, no memory."""
    line = Line(1, {"acme": (150, 0)}, scope="owner:acme")
    line.world.control.owners = {"acme": {"concurrency": 1}}
    line.calls.clear()

    assert line.release() == ["acme"]

    assert not {"latest", "put_latest"} & set(line.calls)
    assert line.calls.count("waiters_by_owner") == 1


def test_a_turn_that_could_not_be_remembered_is_repeated_and_nobody_loses():
    """The wakes count; the next release begins where this one did, and passes whoever just had it."""
    line = Line(1, {"a": (5, 0), "b": (5, 0)})

    def down(name, when):
        if name == "put_latest" and when == "before":
            raise StoreUnavailable

    line.world.store._hook = down
    (first,) = line.release()
    line.world.store.taken.clear()
    (second,) = line.release(first)

    assert {first, second} == {"a", "b"}


def test_who_left_the_line_meanwhile_takes_nobodys_turn():
    """The index still lists a job that was cancelled: the next owner is woken in its place."""
    line = Line(1, {"a": (1, 0), "b": (1, 0), "c": (1, 0)})
    listed = line.world.store.waiters_by_owner(SCOPE, "", 10)
    first = min(listed[0], key=lambda one: one.owner)
    job = line.world.job(first.job_id)
    line.world.store.commit(job, job.with_(waiting_scope=None, waiting_rank=None))
    line.world.store.waiters_by_owner = lambda *_: listed

    (woken,) = line.release()

    assert woken != job.owner_key


def test_a_pause_is_left_in_turn():
    """No limit says how many: a batch at a time, and a flood is not the whole of one."""
    scope = paused_scope("sync")
    line = Line(40, {"flood": (300, 0), "late": (3, 9_000)}, scope=scope)

    woken = line.release()

    assert len(woken) == releaser.BATCH
    assert woken.count("late") == 3


def test_a_pause_that_holds_wakes_nobody():
    """The switch is still thrown."""
    line = Line(1, {"a": (2, 0), "b": (2, 0)}, scope=paused_scope("sync"))
    pause = Switch(name=SwitchName.PAUSE, who="ann", why="x", since=1, workflows=("sync",))
    line.world.control.thrown = {SwitchName.PAUSE.value: pause.stored()}

    assert line.release() == []
