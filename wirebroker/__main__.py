"""`python -m wirebroker` is the command `wirebroker`."""

from wirebroker.cli.program import main

if __name__ == "__main__":
    main()
