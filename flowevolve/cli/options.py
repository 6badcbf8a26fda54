"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

LAST_PORT = 65535
Port = Annotated[int, typer.Option(min=0, max=LAST_PORT, metavar="PORT", help="0: any free one")]
