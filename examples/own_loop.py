"""Evolution in a loop of your own: watch it, pause it, add a candidate by hand, stop it. See docs/how-to/embedding.md.

Run it with: python examples/own_loop.py
"""

from __future__ import annotations

from pathlib import Path

import flowevolve as fe
from flowevolve import clock

CONFIG = Path(__file__).with_name("virtual.toml")


async def evolve() -> fe.Engine:
    """Give the run a prompt of our own after its second update, and stop it after five."""
    async with fe.open_run(fe.load_config(CONFIG)) as engine:
        async for event in engine.events():
            if event.kind == "pool.commit" and event.data["version"] == 2 and engine.best is not None:
                engine.pause()
                name, prompt = next(iter(engine.best.artifact.items()))
                mine = engine.best.artifact.replace(**{name: prompt + "\nAnswer in lower case."})
                print("added", (await engine.inject(mine, parents=[engine.best.id])).id)
                engine.unpause()
            elif event.kind == "pool.commit" and event.data["version"] == 5:
                engine.stop()
    return engine


if __name__ == "__main__":
    done = clock.run(evolve, clock="virtual")
    print("best", done.best and done.best.mean_score, "on the front", [candidate.id for candidate in done.frontier])
