"""How are the figures told? One summary table against the aims, then each figure with its method."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tools.bench.calls import BACKGROUND
from tools.bench.overhead import OURS
from tools.bench.yardstick import YARDSTICK_MS

Found = Mapping[str, Any]
_DRIFT = 1.1
_CPU_MS = 3
_COLD = """Method: AWS's Runtime Interface Emulator starts `python -m awslambdaric` with nothing but the function and
its built layers (byte code inside) on the path. INIT ends when the handler is imported; the second figure adds the
first invocation (clients built, policies read). All functions in turns, medians. The naive handler imports
aws-lambda-powertools, boto3, pydantic, httpx, openai and standardwebhooks. ![](coldstart.png)
"""
_CALLS = """Method: all functions in one process over the real stores; requests counted by hooks in the SDK, a nudge as
one SQS request to send, one to receive, one to delete. Units by DynamoDB's rules from the items before and after.
Caches are warm, ids as long as real ones, two scopes limited. Billed time: CPU as measured, on a machine where
`import openai` takes 616 ms of it (taken in the same run), at the function's share of a processor, plus 6 ms a request
and 150 ms for a provider's or receiver's answer (`tools/bench/prices.json` has the date, sources and assumptions; free
tiers, logs and data transfer are left out). ![](money.png)
"""
_OVERHEAD = """Method: CPU time of the process for each request, from the gateway's event to its answer, SDK included.
Milliseconds say as much of the machine as of the code: the CPU time of `import openai`, taken in the same run, tells
how slow this one is, and the aims are for one where it takes 616 ms. A submit makes three requests with the SDK, a
delivery two, a read one: nearly all of it is the SDK's work, as the last rows show, where its clients do nothing.
"""
_PEERS = """Method: the baseline's own code runs in one process against the emulator and the simulator, its requests
counted as the SDK sends them, its own time billed as ours is; what the provider takes is added to whoever waits for it.
Every job is handed in over an HTTP API. All wait at the memory of our worker. Of the durable function only what AWS
names is counted: an invocation, the wait, an operation each for the execution and its one step; its own time is left
out. Ours runs synchronously where the provider takes 150 ms, in the provider's background mode where it takes a minute,
and does more for its money: two limited scopes, a lease, events, a callback, a ledger of costs. ![](peers.png)
"""
_VERSUS = """Method: the same question to the same simulated provider, read in its ledger; all in turns on one
local cloud, ten functions at once at most where a queue feeds them, each contestant warmed up until it needs no further
process. Ours asks in the provider's background mode and is called back, and where the answer comes at once also in one
synchronous call; the others wait inside the function: once for a provider that answers at once, which shows what each
design costs by itself, once for one that takes as long as such answers do. Ours and the baseline are handed in over
an HTTP API; ours checks a key there and answers with a stored job, the baseline's function puts a message and answers.
The durable function is one asynchronous invocation; how many of those run at once is the emulator's choice, so its
pace where an answer takes long says nothing of AWS. The baseline's queue hands on five messages at once where that is
best for it, one where each waits. Ours runs without the limits of the example policies, for the others have none. Lost
is what had not reached the provider after 90 s. The emulator is one process that serves tables, queues and functions
alike, so a design that writes down more asks more of it than of AWS. ![](pace.png)
"""
_SETTLED = """Method: a background job is handed in, the provider takes it, we end it there, and its sender's webhook
brings it back: gateway, signature, queue, question for the result, all writes. One job at a time on a warm stack.
Whoever waits inside a function has no such time, and is billed for the wait.
"""
_STREAMS = """Method: the real worker over the real table, provider and clock the tests' own, so that pauses are exact.
Allowed: the first piece at once, then a segment for each 250 ms and for each 4 KB. Units are those of all the worker's
writes: segments by their size, the claim, the boundary, the result and the end.
"""
_GROWTH = """Method: settled jobs put straight into the table, then the same number due; a backlog of jobs of up to
1 000 owners. A hot route has so many calls in flight: its numbers are read by whoever has not looked for a second, and
by nobody else. Time is the emulator's, and only good as a ratio.
"""


def summary(found: Found) -> str:
    """Markdown: what was aimed at, what was measured."""
    rows = ["| figure | aim | measured | |", "| --- | --- | ---: | --- |"]
    rows += [f"| {name} | {aim} | {value} | {'met' if met else 'not met'} |" for name, aim, value, met in _aims(found)]
    return "\n".join(rows)


def _aims(found: Found) -> Iterator[tuple[str, str, str, bool]]:
    yield from _cold_aims(found)
    yield from _call_aims(found)
    yield from _overhead_aims(found)
    yield from _stream_aims(found)
    yield from _versus_aims(found)
    for action in ("sweep", "admit", "attempt"):
        points = [one for one in found.get("growth", ()) if one["action"] == action]
        if points:
            told = " → ".join(f"{one['requests']}" for one in points)
            flat = points[-1]["requests"] <= points[0]["requests"] * _DRIFT + 1
            yield f"requests of one {action}, {points[0]['around']} → {points[-1]['around']}", "flat", told, flat


def _overhead_aims(found: Found) -> Iterator[tuple[str, str, str, bool]]:
    aim = f"p50 ≤ {_CPU_MS} ms where `import openai` takes {YARDSTICK_MS} ms"
    for one in found.get("overhead", ())[1:]:
        if one["name"].endswith(OURS):
            continue
        there = one["p50"] / one["slower"]
        told = f"{there:.1f} ms ({one['p50']:.1f} here, where it takes {one['slower'] * YARDSTICK_MS:.0f} ms)"
        yield f"CPU, {one['name']}", aim, told, there <= _CPU_MS


def _stream_aims(found: Found) -> Iterator[tuple[str, str, str, bool]]:
    for one in found.get("streams", ()):
        yield (
            f"segments of a stream, {one['name']}",
            f"≤ {one['allowed']}",
            str(one["segments"]),
            (one["segments"] <= one["allowed"]),
        )


def _versus_aims(found: Found) -> Iterator[tuple[str, str, str, bool]]:
    races = found.get("versus", ())
    for answer_ms, number in sorted({(one["answer_ms"], one["submitters"]) for one in races}):
        same = [one for one in races if (one["answer_ms"], one["submitters"]) == (answer_ms, number)]
        speed = {one["contestant"]: one["jobs_a_second"] for one in same}
        for ours in (name for name in speed if name.startswith("Breakwater")):
            ratio = speed[ours] / speed["SQS + Lambda"]
            what = f"calls a second at {number} submitters, {_pace(answer_ms)}, {ours} against SQS + Lambda"
            yield what, "≥ 1.0 of it", f"{ratio:.2f}", ratio >= 1


def _pace(answer_ms: int) -> str:
    return f"an answer takes {answer_ms // 1000} s" if answer_ms else "answers at once"


def _cold_aims(found: Found) -> Iterator[tuple[str, str, str, bool]]:
    starts = {one["name"]: one for one in found.get("cold", ())}
    if not starts:
        return
    for name, most in (("Admission", 0.4), ("Webhook", 0.35), ("WorkerBackground", 1.0)):
        one, naive = starts[f"{name}Function"], starts["naive"]
        ratio = one["init"] / naive["init"]
        told = f"{ratio:.2f} of it ({one['init']:.0f} of {naive['init']:.0f} ms)"
        yield f"INIT of {name} against the naive handler", f"≤ {most} of it", told, ratio <= most


def _call_aims(found: Found) -> Iterator[tuple[str, str, str, bool]]:
    job = next((one for one in found.get("calls", ()) if one["name"] == BACKGROUND), None)
    if job is None:
        return
    dollars = sum(job["dollars_a_million"].values())
    for name, most, value in (
        ("AWS requests of a submit", 3, job["submit_requests"]),
        ("AWS requests of a background job, all effects", 25, job["requests"]),
        ("write units of it", 35, job["writes"]),
        ("billed ms of it, without the provider's answers", 300, job["own_ms"]),
        ("USD for a million of them", 30, dollars),
    ):
        yield name, f"≤ {most}", f"{value:.4g}", value <= most


def page(found: Found) -> str:
    """The whole page."""
    return "\n".join(_page(found)) + "\n"


def _page(found: Found) -> Iterator[str]:
    yield "# Benchmarks\n\nWritten by `make bench`; every figure is a ratio or a count of one run on one machine.\n"
    yield "Times of a shared machine are only comparable within a part.\n"
    yield summary(found) + "\n"
    for name, title, body in _PARTS:
        if name in found:
            about = found.get("about", {}).get(name, {})
            yield f"## {title}\n\n{body(found[name])}\n"
            yield f"Measured {about.get('on', '')} on {about.get('machine', '')}, Python {about.get('python', '')}"
            yield f"(load {about.get('load', '')}{', quick' if about.get('quick') else ''}).\n"


def _cold(starts: Any) -> str:
    naive = starts[0]
    rows = [
        _COLD,
        "| function | INIT, ms | of naive | INIT + first, ms | of naive |\n| --- | ---: | ---: | ---: | ---: |",
    ]
    for one in starts:
        first = one["first"] / naive["first"]
        rows.append(
            f"| {one['name']} | {one['init']:.0f} | {one['init'] / naive['init']:.2f} "
            f"| {one['first']:.0f} | {first:.2f} |"
        )
    return "\n".join(rows)


def _calls(jobs: Any) -> str:
    rows = [
        _CALLS,
        "| job | submit | requests | write units | read units | SQS | invocations | own ms | billed ms | USD/million |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    rows += [
        f"| {one['name']} | {one['submit_requests']} | {one['requests']} | {one['writes']:g} | {one['reads']:g} | "
        f"{one['sqs']} | {len(one['invocations'])} | {one['own_ms']:.0f} | {one['billed_ms']:.0f} | "
        f"{sum(one['dollars_a_million'].values()):.2f} |"
        for one in jobs
    ]
    job = next(one for one in jobs if one["name"] == BACKGROUND)
    rows.append(
        f"\n{BACKGROUND}, request by request (`w` and `r`: units; META is {job['meta_bytes']} bytes at most):\n\n```"
    )
    for one in job["invocations"]:
        rows.append(one["function"])
        rows += [f"    {each}" for each in one["requests"]]
    return "\n".join([*rows, "```"])


def _peers(jobs: Any) -> str:
    rows = [
        _PEERS,
        "| the provider takes | contestant | requests to AWS | write units | own ms | USD/million |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    rows += [
        f"| {one['wait_ms'] / 1000:g} s | {one['name']} | {one['requests'] or '—'} | {one['writes'] or '—'} "
        f"| {one['own_ms']:.0f} | {one['dollars_a_million']:.2f} |"
        for one in jobs
    ]
    return "\n".join(rows)


def _streams(answers: Any) -> str:
    rows = [
        _STREAMS,
        "| answer | pieces | seconds | KB | segments | allowed | write units |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    rows += [
        f"| {one['name']} | {one['pieces']} | {one['seconds']:g} | {one['kilobytes']:.0f} | {one['segments']} "
        f"| {one['allowed']} | {one['writes']:g} |"
        for one in answers
    ]
    return "\n".join(rows)


def _overhead(kinds: Any) -> str:
    rows = [
        _OVERHEAD,
        "| request | p50, ms | p99, ms | of one SDK request | where own time goes (profiled, ms a request) |",
        "| --- | ---: | ---: | ---: | --- |",
    ]
    for one in kinds:
        where = ", ".join(f"{name} {ms:.2f}" for name, ms in one["profile"][:6])
        ratio = one["p50"] / kinds[0]["p50"]
        rows.append(f"| {one['name']} | {one['p50']:.2f} | {one['p99']:.2f} | {ratio:.1f} | {where} |")
    return "\n".join(rows)


def _growth(points: Any) -> str:
    rows = [
        _GROWTH,
        "| action | around it | requests | read units | write units | ms in the emulator |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    rows += [
        f"| {one['action']} | {one['around']} | {one['requests']} | {one['reads']:g} | {one['writes']:g} "
        f"| {one['ms']:.0f} |"
        for one in points
    ]
    return "\n".join(rows)


def _versus(races: Any) -> str:
    rows = [
        _VERSUS,
        "| the provider | submitters | contestant | handed in → call at the provider, ms | calls a second | lost |",
        "| --- | ---: | --- | ---: | ---: | ---: |",
    ]
    rows += [
        f"| {_pace(one['answer_ms'])} | {one['submitters']} | {one['contestant']} "
        f"| {one['to_call_ms']:.0f} | {one['jobs_a_second']:.1f} "
        f"| {one['lost']} |"
        for one in races
    ]
    return "\n".join(rows)


def _settled(found: Any) -> str:
    return (
        f"{_SETTLED}\n\n| jobs | handed in → call at the provider, ms | ended there → settled here, ms | slowest |\n"
        "| ---: | ---: | ---: | ---: |\n"
        f"| {found['jobs']} | {found['submit_to_call']:.0f} | {found['webhook_to_settled']:.0f} "
        f"| {found['slowest']:.0f} |"
    )


_PARTS = (
    ("cold", "Cold start", _cold),
    ("calls", "Requests and money of one job", _calls),
    ("peers", "The same job where a function waits for the provider", _peers),
    ("overhead", "Own time of a request", _overhead),
    ("streams", "Streams", _streams),
    ("growth", "Growth", _growth),
    ("versus", "Against what people would build instead", _versus),
    ("settled", "From webhook to settled", _settled),
)
