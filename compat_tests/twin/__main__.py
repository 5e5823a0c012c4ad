"""`make twin`: send one request stream to both brokers and compare their files.

python -m compat_tests.twin [DIR]      keeps both directories in DIR
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from compat_tests.twin.comparing import compare
from compat_tests.twin.running import run_twins


def main(arguments: list[str] | None = None) -> int:
    """Run both and print the comparison; return 1 if there are differences that are not agreed."""
    parser = argparse.ArgumentParser(
        prog="compat_tests.twin",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", nargs="?", type=Path, metavar="DIR")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="twin-") as scratch:
        folder = (options.folder or Path(scratch)).absolute()
        comparison = compare(*run_twins(folder))
    sys.stdout.write("".join(f"{line}\n" for line in comparison.report()))
    sys.stdout.write("twins\n" if comparison.is_good else "no twins\n")
    return 0 if comparison.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
