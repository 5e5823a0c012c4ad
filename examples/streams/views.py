"""A window: how often each page was seen in each minute, told when the minute is over."""

from pyspark.sql import functions
from spark import read, run, start

views = read(start("views"), "views", "page STRING, at TIMESTAMP")
minutes = (
    # Views may come a minute late; later ones are left out.
    views.withWatermark("at", "1 minute")
    .groupBy(functions.window("at", "1 minute"), "page")
    .count()
)
counts = minutes.selectExpr("page AS key", "page", "window.start AS minute", "count")
run(counts, "views-by-minute", "views")
