"""The console's HTTP interface: JSON for programs such as work-order systems."""
