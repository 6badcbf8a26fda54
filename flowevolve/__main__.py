"""``python -m flowevolve`` is the command line."""

from flowevolve.cli.app import main

if __name__ == "__main__":
    main()
