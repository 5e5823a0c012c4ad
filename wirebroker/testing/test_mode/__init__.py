"""The broker of `wirebroker serve --test-mode`: its clock, commands and HTTP interface."""
