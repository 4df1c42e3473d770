"""The table of Kafka's broker properties without effect here, grouped by reason; `ignored_properties` reads it.

```
name  type  default  valid values, in Kafka's notation  dynamic | not here
```

Columns are separated by two spaces or more; `null` is no default, `""` the empty text or list. `dynamic`: it may be
changed at run time, as in Kafka. `not here`: Kafka can change it at run time, but its keys, certificates or classes
cannot be checked here, so that the change is refused. A property that gets an effect moves to another table.
"""

TABLE = {
    "both protocols of groups are always served": """
        group.coordinator.rebalance.protocols  LIST  classic,consumer,streams  [consumer, classic, share, streams]""",
    "records of groups are appended at once": """
        group.coordinator.append.linger.ms  INT  -1  [-1,...]
        group.coordinator.cached.buffer.max.bytes  INT  1048588  [524288,...]  dynamic""",
    "compaction reads and writes a megabyte at a time": """
        log.cleaner.io.buffer.size  INT  524288  [0,...]  dynamic""",
    "OpenSSL does the work of Java's TLS providers": """
        ssl.keymanager.algorithm  STRING  SunX509  dynamic
        ssl.protocol  STRING  TLSv1.3  dynamic
        ssl.provider  STRING  null  dynamic
        ssl.secure.random.implementation  STRING  null  dynamic
        ssl.trustmanager.algorithm  STRING  PKIX  dynamic""",
    "Kerberos is not supported, and a listener with GSSAPI is refused": """
        sasl.kerberos.kinit.cmd  STRING  /usr/bin/kinit  dynamic
        sasl.kerberos.min.time.before.relogin  LONG  60000  dynamic
        sasl.kerberos.principal.to.local.rules  LIST  DEFAULT  dynamic
        sasl.kerberos.service.name  STRING  null  dynamic
        sasl.kerberos.ticket.renew.jitter  DOUBLE  0.05  dynamic
        sasl.kerberos.ticket.renew.window.factor  DOUBLE  0.8  dynamic""",
    "brokers log in to each other with the username and password of sasl.jaas.config": """
        sasl.client.callback.handler.class  CLASS  null
        sasl.login.callback.handler.class  CLASS  null
        sasl.login.class  CLASS  null
        sasl.login.connect.timeout.ms  INT  null
        sasl.login.read.timeout.ms  INT  null
        sasl.login.refresh.buffer.seconds  SHORT  300  dynamic
        sasl.login.refresh.min.period.seconds  SHORT  60  dynamic
        sasl.login.refresh.window.factor  DOUBLE  0.8  dynamic
        sasl.login.refresh.window.jitter  DOUBLE  0.05  dynamic
        sasl.login.retry.backoff.max.ms  LONG  10000
        sasl.login.retry.backoff.ms  LONG  100
        sasl.oauthbearer.assertion.algorithm  STRING  RS256  (case insensitive) [ES256, RS256]
        sasl.oauthbearer.assertion.claim.aud  STRING  null
        sasl.oauthbearer.assertion.claim.exp.seconds  INT  300  [0,...,86400]
        sasl.oauthbearer.assertion.claim.iss  STRING  null
        sasl.oauthbearer.assertion.claim.jti.include  BOOLEAN  false
        sasl.oauthbearer.assertion.claim.nbf.seconds  INT  60  [0,...,3600]
        sasl.oauthbearer.assertion.claim.sub  STRING  null
        sasl.oauthbearer.assertion.file  STRING  null
        sasl.oauthbearer.assertion.private.key.file  STRING  null
        sasl.oauthbearer.assertion.private.key.passphrase  PASSWORD  null
        sasl.oauthbearer.assertion.template.file  STRING  null
        sasl.oauthbearer.client.credentials.client.id  STRING  null
        sasl.oauthbearer.client.credentials.client.secret  PASSWORD  null
        sasl.oauthbearer.jwt.retriever.class  CLASS  org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever
        sasl.oauthbearer.scope  STRING  null
        sasl.oauthbearer.token.endpoint.url  STRING  null""",
    "delegation tokens are not built yet": """
        delegation.token.expiry.check.interval.ms  LONG  3600000  [1,...]
        delegation.token.expiry.time.ms  LONG  86400000  [1,...]
        delegation.token.max.lifetime.ms  LONG  604800000  [1,...]
        delegation.token.secret.key  PASSWORD  null""",
    "quotas of replication are not built, and no callback can be set": """
        alter.log.dirs.replication.quota.window.num  INT  11  [1,...]
        alter.log.dirs.replication.quota.window.size.seconds  INT  1  [1,...]
        client.quota.callback.class  CLASS  null
        replication.quota.window.num  INT  11  [1,...]
        replication.quota.window.size.seconds  INT  1  [1,...]""",
    "brokers send the controller no requests: all of them use the metadata store": """
        sasl.mechanism.controller.protocol  STRING  GSSAPI
        controller.socket.timeout.ms  INT  30000
        request.timeout.ms  INT  30000""",
    "a broker waits for its metadata store as long as that takes": """
        initial.broker.registration.timeout.ms  INT  60000""",
    "consumers read from leaders only": """
        replica.selector.class  STRING  null""",
    "the system chooses the sizes of the buffers between brokers": """
        replica.socket.receive.buffer.bytes  INT  65536""",
    "an attempt to connect to another broker ends after replica.socket.timeout.ms": """
        socket.connection.setup.timeout.max.ms  LONG  30000
        socket.connection.setup.timeout.ms  LONG  10000""",
    "every node is broker and controller, and metadata is kept in a store, not in a Raft log": """
        controller.listener.names  LIST  null
        controller.quorum.append.linger.ms  INT  25  [0,...]
        controller.quorum.auto.join.enable  BOOLEAN  false
        controller.quorum.bootstrap.servers  LIST  ""  non-empty list
        controller.quorum.election.backoff.max.ms  INT  1000  [0,...]
        controller.quorum.election.timeout.ms  INT  1000  [0,...]
        controller.quorum.fetch.max.bytes  INT  1048576  [1,...]
        controller.quorum.fetch.snapshot.max.bytes  INT  1048576  [1,...]
        controller.quorum.fetch.timeout.ms  INT  2000  [0,...]
        controller.quorum.request.timeout.ms  INT  2000  [0,...]
        controller.quorum.retry.backoff.ms  INT  20  [0,...]
        controller.quorum.voters  LIST  ""  non-empty list
        early.start.listeners  LIST  null
        metadata.log.dir  STRING  null
        metadata.log.max.record.bytes.between.snapshots  LONG  20971520  [1,...]
        metadata.log.max.snapshot.interval.ms  LONG  3600000  [0,...]
        metadata.log.segment.bytes  INT  1073741824  [8388608,...]
        metadata.log.segment.ms  LONG  604800000
        metadata.max.idle.interval.ms  INT  500  [0,...]
        metadata.max.retention.bytes  LONG  104857600
        metadata.max.retention.ms  LONG  604800000
        process.roles  LIST  null  [broker, controller]""",
    "replicas cannot be moved between log directories": """
        cordoned.log.dirs  LIST  ""  dynamic
        num.replica.alter.log.dirs.threads  INT  null""",
    "an event loop replaces these threads": """
        background.threads  INT  10  [1,...]  dynamic
        group.coordinator.background.threads  INT  2  [1,...]
        group.coordinator.threads  INT  4  [1,...]
        num.io.threads  INT  8  [1,...]  dynamic
        num.network.threads  INT  3  [1,...]  dynamic
        share.coordinator.threads  INT  1  [1,...]""",
    "a connection is not read while its responses wait, so there is no queue to limit": """
        queued.max.requests  INT  500  [1,...]""",
    "logs are recovered one after another": """
        num.recovery.threads.per.data.dir  INT  2  [1,...]  dynamic""",
    "delayed requests are removed when they are answered, so there is nothing to purge": """
        delete.records.purgatory.purge.interval.requests  INT  1
        fetch.purgatory.purge.interval.requests  INT  1000
        producer.purgatory.purge.interval.requests  INT  1000
        share.fetch.purgatory.purge.interval.requests  INT  1000""",
    "metrics are read over HTTP from metrics.port": """
        kafka.metrics.polling.interval.secs  INT  10  [1,...]
        kafka.metrics.reporters  LIST  ""
        metric.reporters  LIST  org.apache.kafka.common.metrics.JmxReporter  not here
        metrics.num.samples  INT  2  [1,...]
        metrics.recording.level  STRING  INFO
        metrics.sample.window.ms  LONG  30000  [1,...]
        telemetry.max.bytes  INT  1048576  [1,...]""",
    "it names or configures a Java class": """
        security.providers  STRING  null
        alter.config.policy.class.name  CLASS  null
        config.providers  LIST  ""  not here
        create.topic.policy.class.name  CLASS  null""",
    "share groups are not built": """
        group.share.assignment.interval.ms  INT  1000  [0,...]  dynamic
        group.share.assignors  LIST  simple
        group.share.delivery.count.limit  INT  5  [2,...,10]
        group.share.heartbeat.interval.ms  INT  5000  [1,...]
        group.share.max.assignment.interval.ms  INT  15000  [0,...]
        group.share.max.delivery.count.limit  INT  10  [5,...,25]
        group.share.max.heartbeat.interval.ms  INT  15000  [1,...]
        group.share.max.partition.max.record.locks  INT  4000  [2000,...,10000]
        group.share.max.record.lock.duration.ms  INT  60000  [30000,...,3600000]
        group.share.max.session.timeout.ms  INT  60000  [1,...]
        group.share.max.share.sessions  INT  2000  [1,...]
        group.share.max.size  INT  200  [1,...,1000]
        group.share.min.assignment.interval.ms  INT  0  [0,...]
        group.share.min.delivery.count.limit  INT  2  [2,...,5]
        group.share.min.heartbeat.interval.ms  INT  5000  [1,...]
        group.share.min.partition.max.record.locks  INT  100  [100,...,2000]
        group.share.min.record.lock.duration.ms  INT  15000  [1000,...,30000]
        group.share.min.session.timeout.ms  INT  45000  [1,...]
        group.share.partition.max.record.locks  INT  2000  [100,...,10000]
        group.share.record.lock.duration.ms  INT  30000  [1000,...,3600000]
        group.share.session.timeout.ms  INT  45000  [1,...]
        share.coordinator.append.linger.ms  INT  -1  [-1,...]
        share.coordinator.cached.buffer.max.bytes  INT  1048588  [524288,...]  dynamic
        share.coordinator.load.buffer.size  INT  5242880  [1,...]
        share.coordinator.snapshot.update.records.per.snapshot  INT  500  [0,...,500]
        share.coordinator.state.topic.compression.codec  INT  0
        share.coordinator.state.topic.min.isr  SHORT  2  [1,...]
        share.coordinator.state.topic.num.partitions  INT  50  [1,...]
        share.coordinator.state.topic.replication.factor  SHORT  3  [1,...]
        share.coordinator.state.topic.segment.bytes  INT  104857600  [1,...]
        share.coordinator.write.timeout.ms  INT  5000  [1,...]""",
    "streams groups are not built": """
        group.streams.assignment.interval.ms  INT  1000  [0,...]  dynamic
        group.streams.heartbeat.interval.ms  INT  5000  [1,...]
        group.streams.initial.rebalance.delay.ms  INT  3000  [0,...]
        group.streams.max.assignment.interval.ms  INT  15000  [0,...]
        group.streams.max.heartbeat.interval.ms  INT  15000  [1,...]
        group.streams.max.session.timeout.ms  INT  60000  [1,...]
        group.streams.max.size  INT  2147483647  [1,...]
        group.streams.max.standby.replicas  INT  2  [0,...]
        group.streams.min.assignment.interval.ms  INT  0  [0,...]
        group.streams.min.heartbeat.interval.ms  INT  5000  [1,...]
        group.streams.min.session.timeout.ms  INT  45000  [1,...]
        group.streams.num.standby.replicas  INT  0  [0,...]
        group.streams.session.timeout.ms  INT  45000  [1,...]""",
    "tiered storage is not built": """
        follower.fetch.last.tiered.offset.enable  BOOLEAN  false  dynamic
        log.local.retention.bytes  LONG  -2  [-2,...]  dynamic
        log.local.retention.ms  LONG  -2  [-2,...]  dynamic
        remote.fetch.max.wait.ms  INT  500  [1,...]  dynamic
        remote.list.offsets.request.timeout.ms  LONG  30000  [1,...]  dynamic
        remote.log.index.file.cache.total.size.bytes  LONG  1073741824  [1,...]  dynamic
        remote.log.manager.copier.thread.pool.size  INT  10  [1,...]  dynamic
        remote.log.manager.copy.max.bytes.per.second  LONG  9223372036854775807  [1,...]  dynamic
        remote.log.manager.copy.quota.window.num  INT  11  [1,...]
        remote.log.manager.copy.quota.window.size.seconds  INT  1  [1,...]
        remote.log.manager.expiration.thread.pool.size  INT  10  [1,...]  dynamic
        remote.log.manager.fetch.max.bytes.per.second  LONG  9223372036854775807  [1,...]  dynamic
        remote.log.manager.fetch.quota.window.num  INT  11  [1,...]
        remote.log.manager.fetch.quota.window.size.seconds  INT  1  [1,...]
        remote.log.manager.follower.thread.pool.size  INT  2  [1,...]  dynamic
        remote.log.manager.task.interval.ms  LONG  30000  [1,...]
        remote.log.manager.thread.pool.size  INT  2  [1,...]
        remote.log.metadata.custom.metadata.max.bytes  INT  128  [0,...]
        remote.log.metadata.manager.class.name  STRING  org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager  non-empty string
        remote.log.metadata.manager.class.path  STRING  null
        remote.log.metadata.manager.impl.prefix  STRING  rlmm.config.  non-empty string
        remote.log.metadata.manager.listener.name  STRING  null  non-empty string
        remote.log.reader.max.pending.tasks  INT  100  [1,...]
        remote.log.reader.threads  INT  10  [1,...]  dynamic
        remote.log.storage.manager.class.name  STRING  null  non-empty string
        remote.log.storage.manager.class.path  STRING  null
        remote.log.storage.manager.impl.prefix  STRING  rsm.config.  non-empty string
        remote.log.storage.system.enable  BOOLEAN  false""",  # noqa: E501 - a row is one line
}
"""Rows by the reason why they have no effect."""
