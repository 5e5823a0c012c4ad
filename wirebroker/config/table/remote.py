"""Remote storage."""

from __future__ import annotations

from typing import Final

from wirebroker.config.forms import kept, named

ROWS: Final = (
    *kept(
        "There is no remote storage.",
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
        """,
    ),
    *named("""
        remote.log.index.file.cache.ttl.ms
        remote.log.manager.copy.quota.window.num
        remote.log.manager.copy.quota.window.size.seconds
        remote.log.manager.fetch.quota.window.num
        remote.log.manager.fetch.quota.window.size.seconds
        remote.log.manager.task.interval.ms
        remote.log.manager.task.retry.backoff.max.ms
        remote.log.manager.task.retry.backoff.ms
        remote.log.manager.task.retry.jitter
        remote.log.manager.thread.pool.size
        remote.log.metadata.custom.metadata.max.bytes
        remote.log.metadata.manager.class.name
        remote.log.metadata.manager.class.path
        remote.log.metadata.manager.impl.prefix
        remote.log.metadata.manager.listener.name
        remote.log.reader.max.pending.tasks
        remote.log.storage.manager.class.name
        remote.log.storage.manager.class.path
        remote.log.storage.manager.impl.prefix
        remote.log.storage.system.enable
    """),
)
