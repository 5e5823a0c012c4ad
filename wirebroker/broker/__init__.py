"""The broker process: opening, listeners, start and stop order, ports, controllers."""
