"""The engine that runs state machines over a log."""
