"""The panels of three published dashboards: their expressions, and why some have no data here.

Each panel has a title and an expression. `$all`, `$broker` and `$topic` replace the dashboards'
variables (namespace, cluster, pod, topic): labels of the scrape configuration, and looked-up names.

Sources: kafka_exporter's own dashboard (Grafana 721, and 7589 after it); Strimzi's dashboards of
the Kafka Exporter, of Kafka and of KRaft.
"""

# ruff: noqa: E501 - a panel a line
from __future__ import annotations

from typing import Final

_EXPORTER_SELECT: Final = 'instance=~".+",topic=~"orders"'
_ALL: Final = 'namespace="here",strimzi_io_cluster="ours"'
_BROKER: Final = f'{_ALL},kubernetes_pod_name=~"ours-.+"'
_SELECTS: Final = {
    "$topic": f'{_BROKER},topic=~"orders",topic!=""',
    "$broker": _BROKER,
    "$all": _ALL,
    "$exporter": _EXPORTER_SELECT,
}
# Labels that Strimzi's dashboards require from the scrape configuration.
LABELS: Final = {
    "namespace": "here",
    "strimzi_io_cluster": "ours",
    "strimzi_io_name": "ours-kafka",
    "kubernetes_pod_name": "ours-0",
    "container": "kafka",
}

GRAFANA_721: Final = """
Message in per second | sum(rate(kafka_topic_partition_current_offset{$exporter}[1m])) by (topic)
Lag by Consumer Group | sum(kafka_consumergroup_lag{$exporter}) by (consumergroup, topic)
Message in per minute | sum(delta(kafka_topic_partition_current_offset{$exporter}[5m])/5) by (topic)
Message consume per minute | sum(delta(kafka_consumergroup_current_offset{$exporter}[5m])/5) by (consumergroup)
Partitions per Topic | sum by(topic) (kafka_topic_partitions{$exporter})
variable job | kafka_consumergroup_current_offset
variable topic | kafka_topic_partition_current_offset{topic!="__consumer_offsets"}
"""

STRIMZI_EXPORTER: Final = """
Topics | count(kafka_topic_partitions{$topic})
Partitions | sum(kafka_topic_partitions{$topic})
Replicas | sum(kafka_topic_partition_replicas{$topic})
In Sync Replicas | sum(kafka_topic_partition_in_sync_replica{$topic})
Under Replicated Partitions | sum(kafka_topic_partition_under_replicated_partition{$topic})
Partitions at minimum ISR | sum(kafka_cluster_partition_atminisr{$topic})
Partitions under minimum ISR | sum(kafka_cluster_partition_underminisr{$topic})
Partitions not on preferred node | sum(kafka_topic_partition_leader_is_preferred{$topic} < bool 1)
Messages in per second | sum(rate(kafka_topic_partition_current_offset{$topic}[5m])) by (topic)
Messages consumed per second | sum(delta(kafka_consumergroup_current_offset{$topic}[5m])/300) by (topic)
Lag by Consumer Group | sum(kafka_consumergroup_lag{$topic}) by (consumergroup, topic)
Consumer Group Offsets | sum(kafka_consumergroup_current_offset{$topic}) by (consumergroup,partition,topic)
Consumer Group Lag | sum(kafka_consumergroup_lag{$topic}) by (consumergroup,partition,topic)
Number of Partitions | sum(kafka_topic_partitions{$topic}) by (topic)
Latest Offsets | sum(kafka_topic_partition_current_offset{$topic}) by (partition,topic)
Oldest Offsets | sum(kafka_topic_partition_oldest_offset{$topic}) by (partition,topic)
variable namespace | kafka_broker_info
"""

STRIMZI_KAFKA: Final = """
Brokers Online | count(kafka_server_replicamanager_leadercount{$all})
Active Controllers | sum(kafka_controller_kafkacontroller_activecontrollercount{$all})
Unclean Leader Election Rate | sum(irate(kafka_controller_controllerstats_uncleanleaderelections_total{$all}[5m]))
Online Replicas | sum(kafka_server_replicamanager_partitioncount{$all})
Under Replicated Partitions | sum(kafka_server_replicamanager_underreplicatedpartitions{$all})
Partitions at minimum ISR | sum(kafka_cluster_partition_atminisr{$all})
Partitions under minimum ISR | sum(kafka_cluster_partition_underminisr{$all})
Offline Partitions Count | sum(kafka_controller_kafkacontroller_offlinepartitionscount{$all})
Memory Usage | sum(container_memory_usage_bytes{namespace="here"}) by (pod)
CPU Usage | sum(rate(container_cpu_usage_seconds_total{namespace="here"}[5m])) by (pod)
Available Disk Space | sum(kubelet_volume_stats_available_bytes{namespace="here"})
Open File Descriptors | sum(process_open_fds{$broker,container="kafka"}) by (kubernetes_pod_name)
JVM Memory Used | sum(jvm_memory_used_bytes{$broker}) by (kubernetes_pod_name)
JVM GC Time | sum(rate(jvm_gc_collection_seconds_sum{$broker}[5m])) by (kubernetes_pod_name)
JVM GC Count | sum(rate(jvm_gc_collection_seconds_count{$broker}[5m])) by (kubernetes_pod_name)
JVM Thread Count | sum(jvm_threads_current{$broker}) by (kubernetes_pod_name)
Total Incoming Byte Rate | sum(irate(kafka_server_brokertopicmetrics_bytesin_total{$topic}[5m]))
Total Outgoing Byte Rate | sum(irate(kafka_server_brokertopicmetrics_bytesout_total{$topic}[5m]))
Incoming Messages Rate | sum(irate(kafka_server_brokertopicmetrics_messagesin_total{$topic}[5m]))
Total Produce Request Rate | sum(irate(kafka_server_brokertopicmetrics_totalproducerequests_total{$topic}[5m]))
Failed Produce Request Rate | sum(irate(kafka_server_brokertopicmetrics_failedproducerequests_total{$topic}[5m]))
Fetch Request Rate | sum(irate(kafka_server_brokertopicmetrics_totalfetchrequests_total{$topic}[5m]))
Failed Fetch Request Rate | sum(irate(kafka_server_brokertopicmetrics_failedfetchrequests_total{$topic}[5m]))
Network Processor Avg Idle Percent | sum(kafka_network_socketserver_networkprocessoravgidle_percent{$broker}*100)
Request Handler Avg Idle Percent | sum(kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent{$broker}*100)
Disk Writes | sum(irate(kafka_server_kafkaserver_linux_disk_write_bytes{$broker}[5m])) by (kubernetes_pod_name)
Disk Reads | sum(irate(kafka_server_kafkaserver_linux_disk_read_bytes{$broker}[5m])) by (kubernetes_pod_name)
Connection Count per Listener | sum(kafka_server_socket_server_metrics_connection_count{$broker}) by (listener)
Log Size | kafka_log_log_size{$topic,partition=~"0"}
variable namespace | kafka_server_replicamanager_leadercount
variable topic | kafka_cluster_partition_replicascount{$broker}
"""

STRIMZI_KRAFT: Final = """
Current Quorum Leader | sum(kafka_server_raftmetrics_current_leader{$broker})
Current Voted Leader | sum(kafka_server_raftmetrics_current_vote{$broker})
Current Quorum Epoch | sum(kafka_server_raftmetrics_current_epoch{$broker})
High Watermark | sum(kafka_server_raftmetrics_high_watermark{$broker})
Log End Offset | sum(kafka_server_raftmetrics_log_end_offset{$broker})
Append Metadata Records Rate | sum(kafka_server_raftmetrics_append_records_rate{$broker})
Fetch Metadata Records Rate | sum(kafka_server_raftmetrics_fetch_records_rate{$broker})
Metadata Records Commit Latency | sum(kafka_server_raftmetrics_commit_latency_avg{$broker})
Current Raft State | max(kafka_server_raftmetrics_current_state) by (current_state)
Metadata Topic Incoming Bytes Rate | sum(irate(kafka_server_raftchannelmetrics_incoming_byte_total{$broker}[5m]))
Metadata Topic Outgoing Bytes Rate | sum(irate(kafka_server_raftchannelmetrics_outgoing_byte_total{$broker}[5m]))
Metadata Topic Requests Rate | sum(irate(kafka_server_raftchannelmetrics_request_total{$broker}[5m]))
Metadata Topic Responses Rate | sum(irate(kafka_server_raftchannelmetrics_response_total{$broker}[5m]))
"""

# Request metrics from the JMX exporter's example rules, as dashboards query them.
JMX_REQUESTS: Final = """
Total time of Produce | max(kafka_network_requestmetrics_totaltimems{$broker,request="Produce",quantile="0.99"})
Total time of consumers' Fetch | max(kafka_network_requestmetrics_totaltimems{$broker,request="FetchConsumer",quantile="0.99"})
Queue time | max(kafka_network_requestmetrics_requestqueuetimems{$broker,quantile="0.95"}) by (request)
Local time | max(kafka_network_requestmetrics_localtimems{$broker,quantile="0.95"}) by (request)
Remote time | max(kafka_network_requestmetrics_remotetimems{$broker,quantile="0.95"}) by (request)
Send time | max(kafka_network_requestmetrics_responsesendtimems{$broker,quantile="0.95"}) by (request)
Measured requests per second | sum(rate(kafka_network_requestmetrics_totaltimems_count_total{$broker}[1m])) by (request)
Request size | max(kafka_network_requestmetrics_requestbytes{$broker,quantile="0.999"}) by (request)
Purgatory of Produce and Fetch | sum(kafka_server_delayedoperationpurgatory_purgatorysize{$broker,delayedOperation=~"Produce|Fetch"})
Log flushes | sum(rate(kafka_log_logflushstats_logflushrateandtimems_count_total{$broker}[1m]))
Cleaner: dirtiest log | max(kafka_log_logcleanermanager_max_dirty_percent{$broker})
Cleaner: since the last run | max(kafka_log_logcleanermanager_time_since_last_run_ms{$broker})
Cleaner: uncleanable partitions | sum(kafka_log_logcleanermanager_uncleanable_partitions_count{$broker}) by (logDirectory)
"""

_KUBERNETES: Final = "Kubernetes reports it for the container"
_JAVA: Final = "there is no JVM"
_ONE_VOTER: Final = "a quorum of one voter sends no requests and holds no elections"
# Title -> reason for missing data.
EMPTY: Final = {
    "Memory Usage": _KUBERNETES,
    "CPU Usage": _KUBERNETES,
    "Available Disk Space": _KUBERNETES,
    "JVM Memory Used": _JAVA,
    "JVM GC Time": _JAVA,
    "JVM GC Count": _JAVA,
    "JVM Thread Count": _JAVA,
    "Unclean Leader Election Rate": "not counted yet",
    "Metadata Topic Incoming Bytes Rate": _ONE_VOTER,
    "Metadata Topic Outgoing Bytes Rate": _ONE_VOTER,
    "Metadata Topic Requests Rate": _ONE_VOTER,
    "Metadata Topic Responses Rate": _ONE_VOTER,
}

DASHBOARDS: Final = {
    "Grafana 721 and 7589": GRAFANA_721,
    "Strimzi Kafka Exporter": STRIMZI_EXPORTER,
    "Strimzi Kafka": STRIMZI_KAFKA,
    "Strimzi KRaft": STRIMZI_KRAFT,
    "JMX exporter's request metrics": JMX_REQUESTS,
}


def panels(dashboard: str) -> list[tuple[str, str]]:
    titles_and_expressions: list[tuple[str, str]] = []
    for line in DASHBOARDS[dashboard].strip().splitlines():
        title, _, expression = line.partition(" | ")
        for name, select in _SELECTS.items():
            expression = expression.replace(name, select)
        titles_and_expressions.append((title, expression))
    return titles_and_expressions
