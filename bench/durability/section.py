"""The section of the page on this bench: runs that last."""

from __future__ import annotations

from bench._lib.text import Content, between, percent, table

ORIGIN = """\
How the figures came about. They were measured on two cores that were also used by others. The first kills found two
faults, which were mended before the 200 kills that count: some replies were paid for and not charged to the budget,
and a run that was killed between its last event and its `result.json` could not be resumed. To check the bench itself,
the use of recorded replies was switched off once, and the bench then reported the replies that were asked for again
(420 in 4 kills). The journal's cost was measured at raised priority. When others use the cores, the journal's thread
spends more time waiting for its turn than working, which costs up to 30 % of the throughput that is left then.
"""


def answer(content: Content) -> str:
    details, lost = content["kill_details"], content["lost_candidates"]
    return (
        f"{content['lost_responses']} of {details['replies_resumed']:,} recorded replies and {lost} candidates in "
        f"{content['kills']} kills; at most {details['most_repeated_payments']} answers at a kill were paid for twice"
    )


def section(content: Content) -> str:
    return f"""\
# Runs that last

    python -m bench.durability --soak 30 --json bench/results/durability.json --charts bench/results/durability

GEPA runs as a stream with speculation, repair, merges and racing, and 12 flows. Code that shares nothing with the
engine's checks the run's accounts from the journal, and the server's own log tells what was asked for twice. The server
is simulated (`fast-demo`).

{_kills(content)}

Six kills in seven come at most 4 s after the process has printed something, so most of them hit work that is being done
again. The seventh comes within 2 s of the start.

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
        ("kills", f"{content['kills']}, in {details['runs']} runs of {details['calls']} calls"),
        (
            "replies in the journal at a kill that were asked for again",
            f"{content['lost_responses']} of the {details['replies_resumed']} that came back to work under way",
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
        (
            f"file handles; tasks beside the requests, {virtual['hours']} hours on the virtual clock",
            f"{between(*virtual['handles'])}; {between(*virtual['tasks'])}",
        ),
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
    said = "none that can be measured" if lost["low"] <= 0 else percent(lost["median"], 1)
    pairs = f"{lost['median']:.3f}; {lost['n']} pairs from {lost['low']:.3f} to {lost['high']:.3f}"
    loop, whole = (details[f"{of}_us_per_call"]["median"] for of in ("loop", "process"))
    return (
        f"throughput lost to the journal at {details['calls_per_second']['median']:.0f} calls a second",
        f"{said} ({pairs}); {loop:.0f} µs of the event loop and {whole:.0f} µs in all for each call",
    )


def _made(soak: Content) -> str:
    return f"{soak['calls']} calls, {soak['proposals']} candidates"


def _memory(soak: Content) -> str:
    return f"{soak['rss_mb']['middle']:.0f} and {soak['rss_mb']['end']:.0f} MB"
