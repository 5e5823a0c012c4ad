"""All steps of the nightly run, and which of them are due."""

from __future__ import annotations

from collections import Counter

from tests.nightly.spark_steps import SPARK_STEPS
from tests.nightly.step import Step, pytest_of

# Tests of the step "group-kinds".
_GROUPS_OF_EVERY_KIND = (
    "compat_tests/groups/test_migrating_groups.py",
    "compat_tests/groups/test_share_life.py",
    "compat_tests/groups/test_streams_applications.py",
)
# Simulations that have a separate step.
_OTHER_SIMULATIONS = (
    *("consumer_groups", "coordinators", "moving_groups", "raft", "raft_planted", "replicas"),
    *("share_groups", "streams_groups"),
)
# Step, selected brokers, and their description.
_MOVES = (
    ("moving-members", "wirebroker-wirebroker", "two wirebrokers"),
    ("moving-members-mixed", "apache-wirebroker", "Apache Kafka and wirebroker"),
    ("moving-members-apache", "apache-apache", "two brokers of Apache Kafka"),
)

STEPS = (
    Step(
        "loop-holds",
        pytest_of(
            "tests/unit/wirebroker/api/test_loop_holds.py",
            "tests/unit/wirebroker/api/test_loop_holds_of_batches.py",
            "tests/unit/wirebroker/api/test_loop_holds_of_groups.py",
            "tests/unit/wirebroker/api/test_request_arrays.py",
            "--measure-holds",
            "--nightly",
        ),
        2,
        "the longest event loop turn for large requests; run nothing else at the same time",
    ),
    Step(
        "largest-requests",
        ("benchmarks.scenarios.largest_requests",),
        10,
        "the largest requests of each kind: the delay of another client, and the memory",
        nights=3,
    ),
    Step(
        "lockstep",
        pytest_of("compat_tests/lockstep", "--seed", "random", "--lockstep-steps", "5000"),
        10,
        "5,000 random steps of each kind sent to both brokers; the responses are compared",
    ),
    Step(
        "crashes",
        pytest_of("tests/crash", "--seed", "random", "--crash-points", "12000"),
        12,
        "12,000 crash points of logs, compactions and whole brokers",
    ),
    Step(
        "simulations",
        pytest_of(
            "tests/simulation",
            *(f"--ignore=tests/simulation/test_{name}.py" for name in _OTHER_SIMULATIONS),
            *("--seed", "random", "--budget-scale", "30", "-n", "2"),
        ),
        12,
        "simulated schedules of classic groups, transactions, deliveries and power losses",
    ),
    Step(
        "consumer-groups",
        pytest_of(
            *("tests/simulation/test_consumer_groups.py", "-k", "not detects"),
            *("--seed", "random", "--budget-scale", "110", "-n", "2"),
        ),
        12,
        "1,000 simulated schedules of consumer groups, with migrations",
        nights=3,
    ),
    Step(
        "moving-groups",
        pytest_of(
            *("tests/simulation/test_moving_groups.py", "-k", "not detects"),
            *("--seed", "random", "--budget-scale", "110"),
        ),
        18,
        "1,000 simulated schedules of consumer groups whose coordinators move",
        nights=3,
    ),
    Step(
        "moving-share-groups",
        pytest_of(
            *("tests/simulation/test_share_groups.py", "-k", "not detects"),
            *("--seed", "random", "--budget-scale", "80"),
        ),
        18,
        "1,000 simulated schedules of share groups whose leaders and coordinators move",
        nights=3,
    ),
    Step(
        "moving-streams-groups",
        pytest_of(
            *("tests/simulation/test_streams_groups.py", "-k", "not detects"),
            *("--seed", "random", "--budget-scale", "60"),
        ),
        12,
        "1,000 simulated schedules of streams groups whose coordinators move",
        nights=3,
    ),
    Step(
        "replicas",
        pytest_of(
            *("tests/simulation/test_replicas.py", "tests/simulation/test_coordinators.py"),
            *("--seed", "random", "--budget-scale", "60"),
        ),
        12,
        "about 1,000 simulated schedules each of replicas and coordinators on three to five nodes",
    ),
    Step(
        "raft",
        pytest_of(
            *("tests/simulation/test_raft.py", "tests/simulation/test_raft_planted.py"),
            *("--nightly", "--seed", "random", "-n", "2"),
        ),
        8,
        "10,000 simulated schedules of quorums with faults and changes of voters; planted faults",
    ),
    Step(
        "properties",
        pytest_of(
            *("tests/property", "tests/java", "--long"),
            *("--seed", "random", "--budget-scale", "10", "-n", "2"),
        ),
        12,
        "many more examples of randomized tests, including messages through Kafka's classes",
    ),
    Step(
        "planted",
        pytest_of(
            "tests/crash",
            "tests/simulation/test_replicas.py",
            "tests/simulation/test_share_groups.py",
            "tests/simulation/test_streams_groups.py",
            "-k",
            "planted or detects",
            "--nightly",
        ),
        12,
        "planted faults, which the crash tests and the simulations of clusters must find",
        nights=3,
    ),
    Step(
        "packaging",
        pytest_of(
            *("tests/test_packaging.py", "tests/test_example_projects.py"),
            *("tests/unit/compiling", "--nightly", "-n", "2"),
        ),
        8,
        "wheels, installs, a dry run of a release, and the example projects",
        nights=3,
    ),
    Step(
        "churn",
        pytest_of("compat_tests/transactions/test_churn.py", "--eos-records", "500000"),
        8,
        "500,000 records through three chained stages under churn",
    ),
    Step(
        "kills",
        pytest_of(
            "compat_tests/faults/test_kills.py",
            "compat_tests/transactions/test_java_kills.py",
            *("--kills", "100", "--seed", "random"),
        ),
        5,
        "a hundred kills of brokers under load",
    ),
    Step(
        "delivery-kills",
        pytest_of(
            "compat_tests/delivery/test_kills.py",
            "compat_tests/delivery/test_secured_nodes.py",
            *("--nightly", "--kills", "20", "--seed", "random"),
        ),
        11,
        "the delivery service: all processes killed on one node (20 runs) and three (2); SASL_SSL",
        nights=6,
    ),
    Step(
        "cluster",
        pytest_of(
            "compat_tests/cluster/nightly_coordinators.py",
            "compat_tests/cluster/nightly_replication.py",
            *("--long", "--seed", "random", "-k", "not three"),
        ),
        12,
        "each node of three-node clusters is killed, frozen and restarted while clients run",
        nights=2,
    ),
    Step(
        "cluster-voters",
        pytest_of(
            "compat_tests/cluster/nightly_coordinators.py",
            "compat_tests/cluster/nightly_replication.py",
            "compat_tests/cluster/quorum/nightly_resumption.py",
            *("--long", "--seed", "random", "-k", "three and own or writes_go_on"),
        ),
        12,
        "the same with three voters, the active one among the victims; how soon writes go on",
        nights=2,
    ),
    Step(
        "cluster-controllers",
        pytest_of(
            "compat_tests/cluster/nightly_controllers.py",
            "compat_tests/cluster/nightly_directories.py",
            "--long",
        ),
        5,
        "controllers are killed and frozen under load; brokers start without a directory",
        nights=3,
    ),
    Step(
        "upgrade",
        pytest_of("compat_tests/cluster/nightly_upgrade.py", "--long"),
        3,
        "a cluster of an earlier version is upgraded node by node under load, then downgraded",
    ),
    Step(
        "logins",
        pytest_of(
            "compat_tests/security/kerberos/nightly_kerberos.py",
            "compat_tests/security/kerberos/nightly_kerberos_cluster.py",
            "compat_tests/security/kerberos/nightly_kerberos_names.py",
            "compat_tests/security/kerberos/nightly_kerberos_times.py",
            "compat_tests/security/tokens/nightly_signed_tokens.py",
            "compat_tests/security/tokens/nightly_tokens.py",
            "--long",
        ),
        6,
        "every client with Kerberos and a real KDC; signed tokens; tokens moved between brokers",
        nights=3,
    ),
    Step(
        "tls",
        pytest_of(
            "compat_tests/security/nightly_key_stores.py",
            "compat_tests/security/nightly_mechanisms.py",
            "compat_tests/security/nightly_other_clients.py",
            "compat_tests/security/nightly_rust.py",
            "compat_tests/security/test_protected_clients.py",
            "--nightly",
        ),
        10,
        "keystores of both kinds; every client with each mechanism over TLS, on both brokers",
        nights=3,
    ),
    Step(
        "transcripts",
        pytest_of("tests/transcripts", "--broker", "apache"),
        7,
        "Apache Kafka still responds as recorded",
        nights=7,
    ),
    Step(
        "transcripts-4.3",
        pytest_of("tests/transcripts", "--broker", "apache"),
        7,
        "Apache Kafka 4.3.1 responds as recorded, except for listed differences",
        kafka="4.3.1",
        nights=2,
    ),
    Step(
        "transcripts-of-4.3",
        pytest_of("tests/transcripts"),
        2,
        "the transcripts on a broker with the features of 4.3",
        kafka="4.3.1",
    ),
    Step(
        "twin",
        ("compat_tests.twin",),
        1,
        "a file-by-file comparison of both brokers' data directories",
    ),
    Step(
        "interchange",
        pytest_of("compat_tests/interchange", "--nightly"),
        8,
        "both brokers use one data directory in turns, in either order, after any kind of stop",
    ),
    Step(
        "groups",
        pytest_of(
            "compat_tests/groups",
            "--nightly",
            *(f"--ignore={file}" for file in _GROUPS_OF_EVERY_KIND),
        ),
        8,
        "groups of every client with each of its assignors, of rust-rdkafka, and mixed groups",
        nights=2,
    ),
    Step(
        "group-kinds",
        pytest_of(*_GROUPS_OF_EVERY_KIND, "--nightly"),
        8,
        "share groups, streams groups, and groups that change their protocol, on every client",
        nights=3,
    ),
    Step(
        "group-kinds-apache",
        pytest_of(*_GROUPS_OF_EVERY_KIND, "--nightly", "--broker", "apache"),
        8,
        "the same against Apache Kafka",
        nights=7,
    ),
    *(
        Step(
            name,
            pytest_of("compat_tests/cluster/moving/nightly_members.py", "--long", "-k", brokers),
            10,
            f"consumer and share groups of every client, whose coordinators move, on {what}",
            nights=7,
        )
        for name, brokers, what in _MOVES
    ),
    Step(
        "kafka-4.3",
        pytest_of(
            *("compat_tests/interchange", "compat_tests/cluster", "compat_tests/lockstep"),
            *("compat_tests/reference", "--long"),
        ),
        20,
        "comparisons with Apache Kafka 4.3.1: directories, clusters, responses, tables",
        kafka="4.3.1",
        nights=3,
    ),
    Step(
        "apache",
        pytest_of(
            *("compat_tests", "--nightly", "--broker", "apache", "-n", "2"),
            *(f"--ignore={file}" for file in _GROUPS_OF_EVERY_KIND),
            "--ignore=compat_tests/console",
        ),
        17,
        "the client tests against Apache Kafka, which must also pass them",
        nights=7,
    ),
    Step(
        "apache-spark",
        pytest_of("spark_it", "--nightly", "--broker", "apache"),
        20,
        "the pipeline tests against Apache Kafka",
        nights=7,
    ),
    Step(
        "spark-4.3",
        pytest_of("spark_it", "--nightly"),
        15,
        "the pipeline tests on a broker with the features of 4.3",
        kafka="4.3.1",
        nights=7,
    ),
    Step(
        "apache-spark-4.3",
        pytest_of("spark_it", "--nightly", "--broker", "apache"),
        20,
        "the pipeline tests against Apache Kafka 4.3.1",
        kafka="4.3.1",
        nights=7,
    ),
    Step(
        "monitoring",
        pytest_of("compat_tests/monitoring", "--nightly"),
        5,
        "Prometheus and kafka_exporter read the metrics that dashboards need from a broker",
    ),
    *(
        Step(
            f"kafka-own-{part}",
            ("compat_tests.kafka_own", "--part", f"{part}/8"),
            18,
            f"Apache Kafka's own integration tests, part {part} of 8",
            nights=7,
        )
        for part in range(1, 9)
    ),
    Step(
        "clients-suites", ("compat_tests.suites",), 5, "client libraries' own test suites", nights=3
    ),
    Step(
        "security-suites",
        ("compat_tests.suites", "--security"),
        6,
        "librdkafka's own ACL tests, and all of kafka-python's own tests",
        nights=3,
    ),
    Step(
        "login-suites",
        ("compat_tests.suites", "--login"),
        8,
        "most of librdkafka's own tests, over SASL_SSL with logins that expire",
        nights=3,
    ),
    Step(
        "cluster-suites",
        ("compat_tests.suites", "--broker", "quorum"),
        5,
        "client libraries' own test suites against a cluster of three voters",
        nights=3,
    ),
    Step(
        "variants",
        pytest_of(
            *("tests", "compat_tests", "-m", "nightly", "--nightly", "-n", "2"),
            # Other steps run what these contain.
            *("--ignore=compat_tests/groups", "--ignore=compat_tests/interchange"),
            *("--ignore=compat_tests/monitoring", "--ignore=compat_tests/suites"),
            "--ignore=compat_tests/console",
            *("--ignore=tests/crash", "--ignore=tests/simulation", "--ignore=tests/unit/compiling"),
            *("--ignore=tests/test_packaging.py", "--ignore=tests/test_example_projects.py"),
            "--ignore=tests/unit/wirebroker/api/test_loop_holds.py",
            "--ignore=tests/unit/wirebroker/api/test_loop_holds_of_batches.py",
            "--ignore=tests/unit/wirebroker/api/test_loop_holds_of_groups.py",
        ),
        8,
        "further variants of quick tests: Apache Kafka's side of them, more clients and clusters",
        nights=3,
    ),
    Step(
        "cluster-transcripts",
        pytest_of("compat_tests/cluster/nightly_transcripts.py", "--long"),
        6,
        "the transcripts on a cluster member whose controller is another process",
        nights=3,
    ),
    *SPARK_STEPS,
    Step(
        "dist",
        ("compiling.release", "--output", ".venv/nightly/dist"),
        3,
        "build the release and try each wheel (run `make .venv/.release-installed` first)",
    ),
    Step(
        "quorum-mixes",
        pytest_of("compat_tests/cluster/quorum/nightly_mixed_quorum.py", "--seed", "random"),
        12,
        "wirebroker and Apache Kafka as voters of one quorum: kills, freezes, network cuts",
        nights=8,
    ),
    Step(
        "cluster-voters-mixed",
        pytest_of(
            "compat_tests/cluster/nightly_coordinators.py",
            "compat_tests/cluster/nightly_replication.py",
            *("--long", "--seed", "random", "-k", "three and mixed"),
        ),
        8,
        "the same as cluster-voters, with a broker of Apache Kafka",
        nights=6,
    ),
    Step(
        "console",
        pytest_of("compat_tests/console", "--nightly"),
        15,
        "the console in a browser: every screen and action, a search of a million records",
        nights=8,
    ),
    Step(
        "console-apache",
        pytest_of("compat_tests/console", "--nightly", "--broker", "apache"),
        15,
        "the same with Apache Kafka",
        nights=8,
    ),
)


def due_steps(day: int, steps: tuple[Step, ...] = STEPS) -> list[Step]:
    """Return the steps of a night.

    Args:
        day: The number of the day on which the night begins.
        steps: All steps.
    """
    due: list[Step] = []
    # Steps of the same interval take turns.
    seen: Counter[int] = Counter()
    for step in steps:
        if (day + seen[step.nights]) % step.nights == 0:
            due.append(step)
        seen[step.nights] += 1
    return due
