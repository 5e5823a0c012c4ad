"""A join of two streams: each order with its payment, if that comes within ten minutes."""

from pyspark.sql import functions
from spark import read, run, start

spark = start("payments")
# Spark drops orders that are older than the watermark; without one it would keep them all.
orders = read(spark, "orders", "id LONG, item STRING, ordered TIMESTAMP")
orders = orders.withWatermark("ordered", "1 minute")
payments = read(spark, "payments", "order_id LONG, cents LONG, paid TIMESTAMP")
payments = payments.withWatermark("paid", "1 minute")
is_payment = functions.expr(
    "order_id = id AND paid >= ordered AND paid <= ordered + INTERVAL 10 MINUTES"
)
paid = orders.join(payments, is_payment)
run(paid.selectExpr("STRING(id) AS key", "id", "item", "cents"), "paid-orders", "payments")
