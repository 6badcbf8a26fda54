"""What models cost, from the configuration and the file of prices it names. None are shipped: they change too often."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from flowevolve._util.errors import InputError, reason_of
from flowevolve._util.registry import describe_validation
from flowevolve.config.llm import PriceSettings
from flowevolve.config.run import Config
from flowevolve.llm.client.accounting import Price

_TABLE = TypeAdapter(dict[str, PriceSettings])


def price_table(config: Config, models: Iterable[str]) -> dict[str, Price]:
    """Prices by model name; those in the configuration take precedence over those in the file.

    Raises:
        InputError: if the file can't be used, or a budget in dollars lacks the price of one of ``models``.
    """
    file = config.llm.prices_file
    sections = {**({} if file is None else _read(file)), **config.llm.prices}
    missing = [name for name in dict.fromkeys(models) if name not in sections]
    if config.budget.dollars is not None and missing:
        tables = ", ".join(f"[llm.prices.{json.dumps(name, ensure_ascii=False)}]" for name in missing)
        raise InputError(
            f"budget.dollars needs the price of {', '.join(map(repr, missing))}: add {tables}, with input and output "
            "in dollars per million tokens, or name a file that has them in llm.prices_file"
        )
    return {
        name: Price(price.input, price.input if price.cached_input is None else price.cached_input, price.output)
        for name, price in sections.items()
    }


def known_prices(config: Config) -> dict[str, Price]:
    """The prices of a recorded run, for reports only: empty if its file of prices can't be read any more."""
    with suppress(InputError):
        return price_table(config, ())
    return {}


def _read(path: Path) -> dict[str, PriceSettings]:
    try:
        return _TABLE.validate_python(tomllib.loads(path.read_text(encoding="utf-8-sig")))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the prices can't be read: {reason_of(error)}. Correct llm.prices_file") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not valid TOML: {error}") from None
    except ValidationError as error:
        known = list(PriceSettings.model_fields)
        raise InputError(
            f"{path}: {describe_validation(error, known=known)} (a model's table has input, output and, if it differs, "
            "cached_input; a name with dots needs quotes)"
        ) from None
