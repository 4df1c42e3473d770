"""`metadata show`: the cluster in the store, and whether a broker with this configuration may join it.

The first question of an operator whose broker refuses to start, or is frozen: which store does this configuration name,
what is in it, and what do the log directories say?
"""

from __future__ import annotations

from typing import TextIO

from odradek.broker.clock import Clock
from odradek.broker.config import BrokerConfig
from odradek.broker.inspection.text import error_text, print_table, time_text
from odradek.broker.metadata.cluster_record import DirectoriesState, why_refused
from odradek.broker.metadata.image import BrokerImage, MetadataImage, TopicImage
from odradek.broker.metadata_commands.directories import state_of
from odradek.broker.metadata_commands.opened_store import StoredMetadata
from odradek.broker.storage.checkpoints.text_file import MalformedFileError
from odradek.broker.storage.log_dir import LogDirRefusedError
from odradek.protocol.plural import pluralize
from odradek.protocol.uuids import uuid_to_text


def show(config: BrokerConfig, metadata: StoredMetadata, clock: Clock, out: TextIO) -> bool:
    """Print it; return whether a broker with this configuration may join. Raises `StoreError`."""
    image = metadata.image()
    refusal = _print_head(config, metadata, clock, out)
    _print_brokers(image, out)
    _print_topics(image, out)
    if refusal is not None:
        out.write(f"\nA broker with this configuration is refused: {refusal}\n")
    return refusal is None


def _print_head(config: BrokerConfig, metadata: StoredMetadata, clock: Clock, out: TextIO) -> str | None:
    """Print where the metadata are and whose; return why the log directories may not join, None if they may."""
    cluster, prefix = metadata.cluster, metadata.keys.prefix.decode()
    out.write(f"store            {metadata.place}, keys under {prefix}, revision {metadata.revision}\n")
    owner = "none" if cluster is None else f"{cluster.id}, created {time_text(cluster.created)}"
    out.write(f"cluster          {owner}\n")
    try:
        state = state_of(config, clock)
    except (LogDirRefusedError, MalformedFileError, OSError) as error:
        out.write(f"log directories  {error_text(error)}\n")
        return error_text(error)
    of = "new" if state.cluster_id is None else f"of cluster {state.cluster_id}"
    out.write(f"log directories  {', '.join(map(str, config.log_dirs))}: {of}{_seen(state)}\n")
    if not config.metadata_etcd_endpoints:
        return None
    return why_refused(metadata.state_of(config.node_id), state, metadata.keys)


def _seen(state: DirectoriesState) -> str:
    return f", have seen revision {state.revision}" if state.revision else ""


def _print_brokers(image: MetadataImage, out: TextIO) -> None:
    rows = [_broker(node_id, image) for node_id in sorted({*image.known, *image.registered})]
    if not rows:
        out.write("\nno brokers\n")
        return
    out.write("\n")
    print_table(out, ("broker", "state", "epoch", "rack", "listeners", "log directory ids"), rows)


def _broker(node_id: int, image: MetadataImage) -> tuple[object, ...]:
    registered, known = image.registered.get(node_id), image.known.get(node_id)
    if registered is not None:
        role = ", controller" if image.controller_id == node_id else ""
        log_dirs = " ".join(registered.log_dirs)
        return node_id, f"{registered.state}{role}", registered.epoch, registered.rack or "-", _at(registered), log_dirs
    assert known is not None
    stop = "stopped" if known.clean_shutdown_epoch == known.last_epoch else "gone without a stop"
    return node_id, stop, known.last_epoch, known.rack or "-", "-", " ".join(known.log_dirs or [known.log_dir])


def _at(broker: BrokerImage) -> str:
    return " ".join(f"{each.name}://{each.host}:{each.port}" for each in broker.listeners)


def _print_topics(image: MetadataImage, out: TextIO) -> None:
    if image.topics:
        out.write("\n")
        titles = ("topic", "id", "partitions", "replicas", "without leader", "out of sync")
        print_table(out, titles, [_topic(topic) for _, topic in sorted(image.topics.items())])
    else:
        out.write("\nno topics\n")
    if image.deleted:
        out.write(f"{pluralize(len(image.deleted), 'deleted topic')}, whose logs brokers remove\n")
    if image.uncovered:
        out.write(f"{pluralize(len(image.uncovered), 'topic')} whose creation runs, or was interrupted\n")


def _topic(topic: TopicImage) -> tuple[object, ...]:
    partitions = topic.partitions
    return (
        topic.name,
        uuid_to_text(topic.topic_id),
        len(partitions),
        len(partitions[0].replicas) if partitions else 0,
        sum(each.leader < 0 for each in partitions),
        sum(len(each.isr) < len(each.replicas) for each in partitions),
    )
