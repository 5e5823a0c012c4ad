"""Update codecs/generated: python -m compiling.messages."""

from __future__ import annotations

import argparse
import sys

from compiling.messages.build import make_modules
from compiling.messages.definitions import DefinitionsError

if __name__ == "__main__":
    argparse.ArgumentParser(prog="compiling.messages", description=__doc__).parse_args()
    try:
        make_modules()
    except DefinitionsError as error:
        sys.exit(str(error))
