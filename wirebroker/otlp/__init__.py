"""Metrics sent to a collector of OpenTelemetry's; loaded if `wirebroker.otlp.endpoint` is set."""
