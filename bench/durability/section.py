"""The section of the page on this bench: runs that last."""

from __future__ import annotations

from bench._lib.text import Content, between, percent, table
from bench.durability.journal import IN_FLIGHT, LATENCY_SECONDS
from bench.durability.jumps import BUDGET_SECONDS, LIVES

ORIGIN = """\
How the figures came about. They were measured on two cores that were used by others, too, so that starting a process
took several seconds at times. An earlier measurement of 200 kills began with two faults, which were mended: some
replies were paid for and not charged to the budget, and a run that was killed between its last event and its
`result.json` could not be resumed. This one began with two faults of the bench itself: it counted evolved prompts as
accepted candidates, which results don't, and its server refused requests for embeddings. To check the bench, the use of
recorded replies was once switched off, and it then reported the replies that were asked for again (420 in 4 kills).
Runs with programs have no jumping clock: libfaketime 0.9.10 also shifts the deadlines of Python's sleeps, which go by
another clock.

Damage to a journal's files is told, and repaired as far as can be: 350 damages drawn at random are tried by
`tests/journal/test_damage.py` in its long form.
"""


def answer(content: Content) -> str:
    details, lost = content["kill_details"], content["lost_candidates"]
    return (
        f"{content['lost_responses']} of {details['replies_resumed']:,} recorded replies and {lost} candidates in "
        f"{content['kills']} kills; {details['repeated_payments']} answers that had not come in were paid for twice, "
        f"at most {details['most_repeated_payments']} at one kill"
    )


def section(content: Content) -> str:
    return f"""\
# Runs that last

    python -m bench.durability --soak 30 --json bench/results/durability.json --charts bench/results/durability

All algorithms run, with 12 flows at a time; GEPA in three forms, of which one is a stream with speculation, repair,
merges and racing. Code that shares nothing with the engine's checks the run's accounts from the journal, and the
server's own log tells what was asked for twice. The server is simulated (`fast-demo`).

{_kills(content)}

Most processes are killed within 4 s of the first event that they record, so that work is often hit that is being done
again; one in seven within 2 s of its start; of those that run programs two in five as soon as one is run; and in each
run two as it ends. After a quarter of the kills the journal is compacted, and that may be killed, too.

{_clock(content)}

{_boundaries(content)}

{_lasting(content)}

Memory grows with what is kept of each candidate: where it came from, what became of it, what was paid for it and, if it
is in the pool, the candidate itself and its scores. On the virtual clock memory also holds the simulated server's
caches, which fill up and then stay. The file handles on the real clock are connections to the server, at most \
{content["kill_details"]["concurrency"]}.

![a day on the virtual clock](../../bench/results/durability/soak_virtual.svg)
![on the real clock](../../bench/results/durability/soak_real.svg)

{ORIGIN}"""


def _kills(content: Content) -> str:
    details = content["kill_details"]
    header = (
        "SIGKILL at random moments; a process of its own for the run (real clock) and for the server, over HTTP",
        "",
    )
    rows = [
        ("kills", f"{content['kills']}, in {details['runs']} runs of {details['calls']:,} calls"),
        ("kills of each algorithm", _counted(details["kills_of"])),
        ("what the run was doing", f"{_counted(details['kills_in'])}"),
        (
            "replies in the journal at a kill that were asked for again",
            f"{content['lost_responses']} of the {details['replies_resumed']:,} that came back to work under way",
        ),
        ("candidates confirmed at a kill and not in the pool afterwards", f"{content['lost_candidates']}"),
        ("updates applied twice", f"{content['repeated_updates']}"),
        (
            "accounts that don't add up at an end (items, versions, calls, tokens, rollouts, proposals)",
            f"{content['kill_faults']}",
        ),
        (
            "answers the server had finished that had not come in, paid for again",
            (
                f"{details['repeated_payments']}, at most {details['most_repeated_payments']} at one kill; "
                f"at most {details['concurrency']} calls are in flight"
            ),
        ),
    ]
    return table(header, rows)


def _counted(counts: Content) -> str:
    most_first = sorted(counts.items(), key=lambda each: -each[1])
    return ", ".join(f"{name} {count}" for name, count in most_first)


def _clock(content: Content) -> str:
    details = content["clock_details"]
    killed = details["killed"]
    rows = [
        ("kills of such runs", f"{killed['kills']}, in {killed['runs']} runs of {killed['calls']:,} calls"),
        (
            "replies asked for again; candidates lost; updates applied twice",
            f"{killed['lost_responses']}; {killed['lost_candidates']}; {killed['repeated_updates']}",
        ),
        ("accounts that don't add up, and events out of order", f"{len(details['faults'])}"),
        (
            (
                f"a run with a budget of {BUDGET_SECONDS} s, and 5 s to end what is under way, in {LIVES} processes, "
                "all but the last killed"
            ),
            (
                f"ended after {details['seconds']:.0f} s by its own account, and its processes lived for "
                f"{details['lived']:.0f} s, starts and ends included"
            ),
        ),
    ]
    jumps = f"{content['clock_jumps']} jumps of the time of day (libfaketime), an hour to 9000 days, forwards and back"
    return table((jumps, ""), rows)


def _boundaries(content: Content) -> str:
    details = content["boundary_details"]
    cut = f"({details['events']} events, {details['calls']} calls)"
    rows = [
        (
            "done again: events, calls or pool differ from the run that was never cut",
            f"{content['boundary_mismatches']} of {content['boundaries']}",
        ),
        (
            "rebuilt from the journal: accounts that don't add up",
            f"{content['rebuilt_faults']} of {content['rebuilt']}",
        ),
    ]
    return table((f"every boundary between events and calls of one run on the virtual clock {cut}", ""), rows)


def _lasting(content: Content) -> str:
    virtual, real, faults = content["soak_virtual"], content["soak_real"], content["fault_schedule"]
    rows = [
        (
            f"{percent(faults['rate'])} of the attempts fail ({_WAYS}): calls given up",
            f"{_given_up(faults)}; {_accounted(faults)}",
        ),
        (f"{virtual['hours']} hours on the virtual clock, {_made(virtual)}: {_WHEN}", _memory(virtual)),
        (f"{60 * real['hours']:.0f} minutes on the real clock, {_made(real)}: {_WHEN}", _memory(real)),
        (
            "memory for each candidate proposed, second half, real clock",
            f"{real['rss_bytes_per_proposal'] / 1000:.1f} kB",
        ),
        ("file handles; tasks beside the requests, second half, virtual clock", _open(virtual)),
        ("the same, real clock", _open(real)),
        ("journal, for each call", f"{virtual['journal_bytes_per_call'] / 1000:.1f} kB"),
        _journal(content),
    ]
    return table(("", ""), rows)


_WHEN = "memory in the middle and at the end"
_WAYS = "429, 503, 500, redirects, resets, cut, hanging, trickling, malformed and empty answers"


def _given_up(faults: Content) -> str:
    return f"{faults['failed']} of {faults['calls']}, with {faults['retries']} retries, in {faults['seconds']:.0f} s"


def _accounted(faults: Content) -> str:
    return f"{len(faults['faults'])} faults in the accounts" if faults["faults"] else "every item accounted for"


def _journal(content: Content) -> tuple[str, str]:
    details = content["journal_overhead_details"]
    lost = details["lost_throughput"]
    loop, whole = (_with_range(details[f"{of}_us_per_call"]) for of in ("loop", "process"))
    return (
        (
            f"throughput lost to the journal at {details['calls_per_second']['median']:.0f} calls a second, where the "
            f"server allows {IN_FLIGHT / LATENCY_SECONDS:.0f} and is the limit (median of {lost['n']} pairs)"
        ),
        (
            f"{percent(lost['median'], 1)} ({percent(lost['low'], 1)} to {percent(lost['high'], 1)}); "
            f"{loop} µs of the event loop and {whole} µs in all for each call. What a [run directory](overhead.md) "
            "costs at full speed is measured apart"
        ),
    )


def _with_range(spread: Content) -> str:
    """A median that may be below 0, with its range."""
    median, low, high = (f"{spread[name]:.0f}" for name in ("median", "low", "high"))
    return f"{median} ({between(low, high)})"


def _open(soak: Content) -> str:
    """The numbers of file handles and tasks."""
    return f"{between(*soak['handles'])}; {between(*soak['tasks'])}"


def _made(soak: Content) -> str:
    return f"{soak['calls']} calls, {soak['proposals']} candidates"


def _memory(soak: Content) -> str:
    return f"{soak['rss_mb']['middle']:.0f} and {soak['rss_mb']['end']:.0f} MB"
