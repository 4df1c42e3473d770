"""Names that are legal in a Kafka broker's configuration and change nothing here, each with the reason.

They load with a warning, so that an existing `server.properties` can be tried as it is. A name leaves this list when a
table takes it in. Together with the tables the list covers every property of Kafka 4.3.1, and those that older versions
knew; prefixes stand for families whose names are open-ended.
"""

from __future__ import annotations

_REASONS = {
    "both protocols of groups are always served": "group.coordinator.rebalance.protocols",
    "records of groups are appended at once": """
        group.coordinator.append.linger.ms group.coordinator.cached.buffer.max.bytes""",
    "transactions are not built yet": """
        add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms
        transaction.abort.timed.out.transaction.cleanup.interval.ms transaction.max.timeout.ms
        transaction.partition.verification.enable transaction.remove.expired.transaction.cleanup.interval.ms
        transaction.state.log.load.buffer.size transaction.state.log.min.isr transaction.state.log.num.partitions
        transaction.state.log.replication.factor transaction.state.log.segment.bytes
        transaction.two.phase.commit.enable transactional.id.expiration.ms""",
    "compaction reads and writes a megabyte at a time": "log.cleaner.io.buffer.size",
    "TLS is not built yet: a listener that asks for it is refused": """
        ssl.allow.dn.changes ssl.allow.san.changes ssl.cipher.suites ssl.client.auth ssl.enabled.protocols
        ssl.endpoint.identification.algorithm ssl.engine.factory.class ssl.key.password ssl.keymanager.algorithm
        ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location ssl.keystore.password ssl.keystore.type
        ssl.principal.mapping.rules ssl.protocol ssl.provider ssl.secure.random.implementation
        ssl.trustmanager.algorithm ssl.truststore.certificates ssl.truststore.location ssl.truststore.password
        ssl.truststore.type""",
    "authentication is not built yet: a listener that asks for it is refused": """
        connection.failed.authentication.delay.ms connections.max.reauth.ms principal.builder.class
        sasl.client.callback.handler.class sasl.enabled.mechanisms sasl.jaas.config sasl.kerberos.kinit.cmd
        sasl.kerberos.min.time.before.relogin sasl.kerberos.principal.to.local.rules sasl.kerberos.service.name
        sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
        sasl.login.callback.handler.class sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms
        sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
        sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
        sasl.mechanism.controller.protocol sasl.mechanism.inter.broker.protocol
        sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
        sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
        sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
        sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
        sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase
        sasl.oauthbearer.assertion.template.file sasl.oauthbearer.client.credentials.client.id
        sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.clock.skew.seconds
        sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
        sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
        sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url
        sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope
        sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url
        sasl.server.callback.handler.class sasl.server.max.receive.size security.providers""",
    "delegation tokens are not built yet": """
        delegation.token.expiry.check.interval.ms delegation.token.expiry.time.ms delegation.token.master.key
        delegation.token.max.lifetime.ms delegation.token.secret.key""",
    "access rules are not built yet, and no authorizer can be set": """
        allow.everyone.if.no.acl.found super.users""",
    "quotas are not built yet": """
        alter.log.dirs.replication.quota.window.num alter.log.dirs.replication.quota.window.size.seconds
        client.quota.callback.class controller.quota.window.num controller.quota.window.size.seconds
        max.connection.creation.rate quota.window.num quota.window.size.seconds replication.quota.window.num
        replication.quota.window.size.seconds""",
    "several brokers are not built yet": """
        auto.leader.rebalance.enable broker.heartbeat.interval.ms broker.session.timeout.ms controlled.shutdown.enable
        controlled.shutdown.max.retries controlled.shutdown.retry.backoff.ms controller.socket.timeout.ms
        initial.broker.registration.timeout.ms inter.broker.listener.name leader.imbalance.check.interval.seconds
        leader.imbalance.per.broker.percentage num.replica.fetchers replica.fetch.backoff.ms replica.fetch.max.bytes
        replica.fetch.min.bytes replica.fetch.response.max.bytes replica.fetch.wait.max.ms replica.selector.class
        replica.socket.receive.buffer.bytes replica.socket.timeout.ms request.timeout.ms
        security.inter.broker.protocol socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms""",
    "every node is broker and controller, and metadata is kept in a store, not in a Raft log": """
        controller.listener.names controller.quorum.append.linger.ms controller.quorum.auto.join.enable
        controller.quorum.bootstrap.servers controller.quorum.election.backoff.max.ms
        controller.quorum.election.timeout.ms controller.quorum.fetch.max.bytes
        controller.quorum.fetch.snapshot.max.bytes controller.quorum.fetch.timeout.ms
        controller.quorum.request.timeout.ms controller.quorum.retry.backoff.ms controller.quorum.voters
        early.start.listeners metadata.log.dir metadata.log.max.record.bytes.between.snapshots
        metadata.log.max.snapshot.interval.ms metadata.log.segment.bytes metadata.log.segment.min.bytes
        metadata.log.segment.ms metadata.max.idle.interval.ms metadata.max.retention.bytes metadata.max.retention.ms
        process.roles unstable.api.versions.enable unstable.feature.versions.enable""",
    "there is one log directory, and no moving between several": """
        cordoned.log.dirs log.dir.failure.timeout.ms num.replica.alter.log.dirs.threads""",
    "an event loop does the work of these threads": """
        background.threads group.coordinator.background.threads group.coordinator.threads num.io.threads
        num.network.threads share.coordinator.threads""",
    "a connection is not read while its answers wait, so there is no queue to bound": """
        queued.max.request.bytes queued.max.requests""",
    "logs are recovered one after the other": "num.recovery.threads.per.data.dir",
    "parked requests are removed when they are answered, so there is nothing to purge": """
        delete.records.purgatory.purge.interval.requests fetch.purgatory.purge.interval.requests
        producer.purgatory.purge.interval.requests share.fetch.purgatory.purge.interval.requests""",
    "metrics are read over HTTP from metrics.port": """
        auto.include.jmx.reporter kafka.metrics.polling.interval.secs kafka.metrics.reporters metric.reporters
        metrics.num.samples metrics.recording.level metrics.sample.window.ms telemetry.max.bytes""",
    "it names a Java class, or feeds one": """
        alter.config.policy.class.name config.providers create.topic.policy.class.name""",
    "share groups are not built": """
        group.share.assignment.interval.ms group.share.assignors group.share.delivery.count.limit group.share.enable
        group.share.heartbeat.interval.ms group.share.max.assignment.interval.ms
        group.share.max.delivery.count.limit group.share.max.heartbeat.interval.ms
        group.share.max.partition.max.record.locks group.share.max.record.lock.duration.ms
        group.share.max.session.timeout.ms group.share.max.share.sessions group.share.max.size
        group.share.min.assignment.interval.ms group.share.min.delivery.count.limit
        group.share.min.heartbeat.interval.ms group.share.min.partition.max.record.locks
        group.share.min.record.lock.duration.ms group.share.min.session.timeout.ms
        group.share.partition.max.record.locks group.share.record.lock.duration.ms group.share.session.timeout.ms
        share.coordinator.append.linger.ms share.coordinator.cached.buffer.max.bytes
        share.coordinator.load.buffer.size share.coordinator.snapshot.update.records.per.snapshot
        share.coordinator.state.topic.compression.codec share.coordinator.state.topic.min.isr
        share.coordinator.state.topic.num.partitions share.coordinator.state.topic.replication.factor
        share.coordinator.state.topic.segment.bytes share.coordinator.write.timeout.ms""",
    "streams groups are not built": """
        group.streams.assignment.interval.ms group.streams.heartbeat.interval.ms
        group.streams.initial.rebalance.delay.ms group.streams.max.assignment.interval.ms
        group.streams.max.heartbeat.interval.ms group.streams.max.session.timeout.ms group.streams.max.size
        group.streams.max.standby.replicas group.streams.min.assignment.interval.ms
        group.streams.min.heartbeat.interval.ms group.streams.min.session.timeout.ms
        group.streams.num.standby.replicas group.streams.session.timeout.ms""",
    "tiered storage is not built": """
        follower.fetch.last.tiered.offset.enable log.local.retention.bytes log.local.retention.ms
        remote.fetch.max.wait.ms remote.list.offsets.request.timeout.ms
        remote.log.index.file.cache.total.size.bytes remote.log.manager.copier.thread.pool.size
        remote.log.manager.copy.max.bytes.per.second remote.log.manager.copy.quota.window.num
        remote.log.manager.copy.quota.window.size.seconds remote.log.manager.expiration.thread.pool.size
        remote.log.manager.fetch.max.bytes.per.second remote.log.manager.fetch.quota.window.num
        remote.log.manager.fetch.quota.window.size.seconds remote.log.manager.follower.thread.pool.size
        remote.log.manager.task.interval.ms remote.log.manager.thread.pool.size
        remote.log.metadata.custom.metadata.max.bytes remote.log.metadata.manager.class.name
        remote.log.metadata.manager.class.path remote.log.metadata.manager.impl.prefix
        remote.log.metadata.manager.listener.name remote.log.reader.max.pending.tasks remote.log.reader.threads
        remote.log.storage.manager.class.name remote.log.storage.manager.class.path
        remote.log.storage.manager.impl.prefix remote.log.storage.system.enable""",
    "Kafka removed it in 4.0 or before": """
        group.coordinator.new.enable offsets.commit.required.acks
        advertised.host.name advertised.port broker.id.generation.enable control.plane.listener.name host.name
        inter.broker.protocol.version log.message.downconversion.enable log.message.format.version
        log.message.timestamp.difference.max.ms port reserved.broker.max.id zookeeper.clientCnxnSocket
        zookeeper.connect zookeeper.connection.timeout.ms zookeeper.max.in.flight.requests
        zookeeper.metadata.migration.enable zookeeper.session.timeout.ms zookeeper.set.acl""",
}

PREFIXES = {
    "listener.name.": "properties of single listeners are not built yet",
    "password.encoder.": "Kafka removed it in 4.0 or before",
    "rlmm.config.": "tiered storage is not built",
    "rsm.config.": "tiered storage is not built",
    "zookeeper.ssl.": "Kafka removed it in 4.0 or before",
}

WITHOUT_MEANING: dict[str, str] = {name: reason for reason, names in _REASONS.items() for name in names.split()}


def reason_without_meaning(name: str) -> str | None:
    """Return why a name that Kafka knows changes nothing here, or None if it is not such a name."""
    reason = WITHOUT_MEANING.get(name)
    if reason is None:
        reason = next((reason for prefix, reason in PREFIXES.items() if name.startswith(prefix)), None)
    return reason
