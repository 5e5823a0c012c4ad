"""What is published: an sdist, wheels, a bill of materials, checksums (`make dist`)."""
