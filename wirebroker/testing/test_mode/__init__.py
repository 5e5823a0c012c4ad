"""The broker of `wirebroker serve --test-mode`: its clock, its commands, its HTTP interface."""
