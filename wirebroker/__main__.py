"""`python -m wirebroker` is the command `wirebroker`."""

from wirebroker.cli import main

if __name__ == "__main__":
    main()
