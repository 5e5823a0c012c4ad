"""`wirebroker doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from wirebroker.cli.plumbing.running import FAILED, ClusterFlags, cluster_flags, run_verb
from wirebroker.client.checks.health_checks import HealthLimits, Weight, run_checks

if TYPE_CHECKING:
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient

_SIGNS: Final = {Weight.TROUBLE: "!!", Weight.WARNING: "! ", Weight.OPEN: "? "}


@click.command()
@click.option(
    "--lag",
    type=click.IntRange(1),
    default=10_000,
    metavar="N",
    help="Report groups with a lag of N records or more. [default: 10000]",
)
@click.option(
    "--free",
    "free_percent",
    type=click.FloatRange(0, 100),
    default=10.0,
    metavar="PERCENT",
    help="Report disks with less free space. [default: 10]",
)
@click.option(
    "--skew",
    "skew_s",
    type=click.FloatRange(0.1),
    default=5.0,
    metavar="SECONDS",
    help="Report clocks that differ by more. [default: 5]",
)
@click.option(
    "--wait",
    "patience_s",
    type=click.FloatRange(0, 600),
    default=5.0,
    metavar="SECONDS",
    help="How long a rebalance may take. [default: 5]",
)
@click.option(
    "--metrics",
    "metrics_urls",
    multiple=True,
    metavar="URL",
    help="Check request times in a broker's /metrics page too (repeatable).",
)
@click.option(
    "--slow",
    "slow_ms",
    type=click.FloatRange(0),
    default=1000.0,
    metavar="MS",
    help="Report APIs where 1 of 100 requests takes longer; needs --metrics. [default: 1000]",
)
@cluster_flags
def doctor(
    *,
    lag: int,
    free_percent: float,
    skew_s: float,
    patience_s: float,
    metrics_urls: tuple[str, ...],
    slow_ms: float,
    **flags: Unpack[ClusterFlags],
) -> int:
    """Check a cluster's health and suggest a fix for each problem.

    The checks cover unreachable advertised addresses, partitions without leaders or in-sync
    replicas, groups that hang or lag, disks, controllers, clocks, open transactions, leftover
    throttles, and with --metrics slow requests.

    The exit status is 1 if there is a problem. Checks that could not be made do not count.
    """
    is_sick = False

    async def work(client: KafkaClient, out: Output) -> None:
        nonlocal is_sick
        limits = HealthLimits(
            lag,
            free_percent / 100,
            int(skew_s * 1000),
            patience_s,
            client.is_asked_locally,
            metrics_urls,
            slow_ms,
        )
        results = await run_checks(client, limits)
        rows: list[dict[str, Any]] = []
        lines: list[str] = []
        for name, symptoms in results.items():
            is_sick = is_sick or any(symptom.weight is not Weight.OPEN for symptom in symptoms)
            if not symptoms:
                lines.append(f"ok  {name}")
            for symptom in symptoms:
                lines += [
                    f"{_SIGNS[symptom.weight]}  {out.title(name)}: {symptom.what}",
                    f"      next: {symptom.next_step}",
                ]
            rows.append(
                {
                    "question": name,
                    "symptoms": [
                        {**symptom._asdict(), "weight": symptom.weight.value}
                        for symptom in symptoms
                    ],
                }
            )
        out.show(rows, lines)

    return run_verb(flags, work) or (FAILED if is_sick else 0)
