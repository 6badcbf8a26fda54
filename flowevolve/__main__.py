"""``flowevolve`` and ``python -m flowevolve`` are the command line."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Load the command line and call it. Whoever presses Ctrl-C while it loads is shown no traceback."""
    try:
        from flowevolve.cli.app import main as command_line  # noqa: PLC0415 - an interrupt of this is caught

        command_line()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)  # as `flowevolve.core.stop_reasons.INTERRUPTED` has it


if __name__ == "__main__":
    main()
