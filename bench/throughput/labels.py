"""What the methods are called on the page, in the order of the page."""

from __future__ import annotations

LABELS = {
    "gepa_sync": "gepa 0.1.4, synchronous",
    "gepa_pxn_2x2": "gepa, PxN 2x2",
    "gepa_pxn_4x4": "gepa, PxN 4x4",
    "gepa_pxn_8x8": "gepa, PxN 8x8",
    "agentdescent": "agentdescent 0.7.0, asynchronous",
    "lockstep": "ours, lockstep",
    "lockstep_real": "ours, lockstep, in real time",
    "plain": "ours, `plain`",
    "stream": "ours, `stream`",
    "stream_real": "ours, `stream`, in real time",
    "careful": "ours, `careful`",
    "flashevolve": "ours, `flashevolve`",
    "combee_10": "ours, Combee, 10 reflections a proposal",
    "combee_40": "ours, Combee, 40 reflections a proposal",
    "ceiling": "load without end",
}
