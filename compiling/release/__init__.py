"""The files of a release: an sdist, wheels, a bill of materials, checksums (`make dist`)."""
