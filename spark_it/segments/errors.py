"""What the data source tells its user."""

from __future__ import annotations


class OptionError(ValueError):
    """An option that cannot be followed, with what would do."""


class DataLossError(Exception):
    """Records that were to be read are gone: removed by retention or deletion, or cut off.

    With `failOnDataLoss=false` reading goes on behind them.
    """
