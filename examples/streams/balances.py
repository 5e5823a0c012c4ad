"""An aggregate: the balance of each account, told again whenever it changes."""

from pyspark.sql import functions
from spark import read, run, start

transfers = read(start("balances"), "transfers", "account STRING, cents LONG")
balances = transfers.groupBy("account").agg(
    functions.sum("cents").alias("cents"), functions.count("*").alias("transfers")
)
run(balances.withColumn("key", balances.account), "balances", "balances", mode="update")
