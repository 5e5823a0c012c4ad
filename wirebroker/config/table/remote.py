"""Configs of remote storage."""

from __future__ import annotations

from typing import Final

from wirebroker.config.rows.forms import kept

ROWS: Final = (
    *kept(
        "remote storage (KIP-405) is not supported.",
        """
        follower.fetch.last.tiered.offset.enable boolean false - cluster-wide
        remote.fetch.max.wait.ms int 500 1.. cluster-wide
        remote.list.offsets.request.timeout.ms long 30000 1.. cluster-wide
        remote.log.index.file.cache.total.size.bytes long 1073741824 1.. cluster-wide
        remote.log.manager.copier.thread.pool.size int 10 1.. cluster-wide doubles
        remote.log.manager.copy.max.bytes.per.second long 9223372036854775807 1.. cluster-wide
        remote.log.manager.expiration.thread.pool.size int 10 1.. cluster-wide doubles
        remote.log.manager.fetch.max.bytes.per.second long 9223372036854775807 1.. cluster-wide
        remote.log.manager.follower.thread.pool.size int 2 1.. cluster-wide doubles
        remote.log.reader.threads int 10 1.. cluster-wide doubles
        remote.log.index.file.cache.ttl.ms long 900000 - read-only internal
        remote.log.manager.copy.quota.window.num int 11 - read-only
        remote.log.manager.copy.quota.window.size.seconds int 1 - read-only
        remote.log.manager.fetch.quota.window.num int 11 - read-only
        remote.log.manager.fetch.quota.window.size.seconds int 1 - read-only
        remote.log.manager.task.interval.ms long 30000 - read-only
        remote.log.manager.task.retry.backoff.max.ms long 30000 - read-only internal
        remote.log.manager.task.retry.backoff.ms long 500 - read-only internal
        remote.log.manager.task.retry.jitter double 0.2 - read-only internal
        remote.log.manager.thread.pool.size int 2 - read-only
        remote.log.metadata.custom.metadata.max.bytes int 128 - read-only
        remote.log.metadata.manager.class.name string org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager - read-only
        remote.log.metadata.manager.class.path string - - read-only
        remote.log.metadata.manager.impl.prefix string rlmm.config. - read-only
        remote.log.metadata.manager.listener.name string - - read-only
        remote.log.reader.max.pending.tasks int 100 - read-only
        remote.log.storage.manager.class.name string - - read-only
        remote.log.storage.manager.class.path string - - read-only
        remote.log.storage.manager.impl.prefix string rsm.config. - read-only
        remote.log.storage.system.enable boolean false - read-only
        """,  # noqa: E501 - the name of a class
    ),
)
