"""The records of the metadata log, in all versions up to Kafka 4.3 (form: codecs/schema.py).

Law: numbers and tags are on disk in every cluster; a line is added here, never changed.

Source: KIP-500, KIP-631 and their successors; what Apache Kafka 4.3.1 writes and reads, compared
byte for byte in tests/java.
"""

from __future__ import annotations

from typing import Final

METADATA_RECORDS: Final = """
RegisterBrokerRecord 0 0-4
  broker_id int32
  is_migrating_zk_broker bool 2+
  incarnation_id uuid
  broker_epoch int64
  end_points []BrokerEndpoint
    name string
    host string
    port uint16
    security_protocol int16
  features []BrokerFeature
    name string
    min_supported_version int16
    max_supported_version int16
  rack string null=0+
  fenced bool default=true
  in_controlled_shutdown bool 1+
  log_dirs []uuid 3+ tag=0
  cordoned_log_dirs []uuid 4+ null=4+ tag=1 default=null

UnregisterBrokerRecord 1 0
  broker_id int32
  broker_epoch int64

TopicRecord 2 0
  name string
  topic_id uuid

PartitionRecord 3 0-2
  partition_id int32 default=-1
  topic_id uuid
  replicas []int32
  isr []int32
  removing_replicas []int32
  adding_replicas []int32
  leader int32 default=-1
  leader_recovery_state int8 tag=0
  leader_epoch int32 default=-1
  partition_epoch int32 default=-1
  directories []uuid 1+
  eligible_leader_replicas []int32 2+ null=2+ tag=1 default=null
  last_known_elr []int32 2+ null=2+ tag=2 default=null

ConfigRecord 4 0
  resource_type int8
  resource_name string
  name string
  value string null=0+

PartitionChangeRecord 5 0-2
  partition_id int32 default=-1
  topic_id uuid
  isr []int32 null=0+ tag=0 default=null
  leader int32 tag=1 default=-2
  replicas []int32 null=0+ tag=2 default=null
  removing_replicas []int32 null=0+ tag=3 default=null
  adding_replicas []int32 null=0+ tag=4 default=null
  leader_recovery_state int8 tag=5 default=-1
  directories []uuid 1+ null=1+ tag=8 default=null
  eligible_leader_replicas []int32 2+ null=2+ tag=6 default=null
  last_known_elr []int32 2+ null=2+ tag=7 default=null

FenceBrokerRecord 7 0
  id int32
  epoch int64

UnfenceBrokerRecord 8 0
  id int32
  epoch int64

RemoveTopicRecord 9 0
  topic_id uuid

DelegationTokenRecord 10 0
  owner string
  requester string
  renewers []string
  issue_timestamp int64
  max_timestamp int64
  expiration_timestamp int64
  token_id string

UserScramCredentialRecord 11 0
  name string
  mechanism int8
  salt bytes
  stored_key bytes
  server_key bytes
  iterations int32

FeatureLevelRecord 12 0
  name string
  feature_level int16

ClientQuotaRecord 14 0
  entity []EntityData
    entity_type string
    entity_name string null=0+
  key string
  value float64
  remove bool

ProducerIdsRecord 15 0
  broker_id int32
  broker_epoch int64 default=-1
  next_producer_id int64

BrokerRegistrationChangeRecord 17 0-3
  broker_id int32
  broker_epoch int64
  fenced int8 tag=0
  in_controlled_shutdown int8 1+ tag=1
  log_dirs []uuid 2+ tag=2
  cordoned_log_dirs []uuid 3+ null=3+ tag=3 default=null

AccessControlEntryRecord 18 0
  id uuid
  resource_type int8
  resource_name string
  pattern_type int8
  principal string
  host string
  operation int8
  permission_type int8

RemoveAccessControlEntryRecord 19 0
  id uuid

NoOpRecord 20 0

ZkMigrationStateRecord 21 0
  zk_migration_state int8

RemoveUserScramCredentialRecord 22 0
  name string
  mechanism int8

BeginTransactionRecord 23 0
  name string null=0+ tag=0 default=null

EndTransactionRecord 24 0

AbortTransactionRecord 25 0
  reason string null=0+ tag=0 default=null

RemoveDelegationTokenRecord 26 0
  token_id string

RegisterControllerRecord 27 0
  controller_id int32
  incarnation_id uuid
  zk_migration_ready bool
  end_points []ControllerEndpoint
    name string
    host string
    port uint16
    security_protocol int16
  features []ControllerFeature
    name string
    min_supported_version int16
    max_supported_version int16

ClearElrRecord 28 0
  topic_name string
"""
