"""The values of control records of a Raft quorum; they are in Kafka's metadata log, not in topics."""

from typing import Annotated

import msgspec

from odradek.protocol.schema import ZERO_UUID, Message, Structure, i16, i32, i64, message, since, string, u16, uuid


class Voter(Structure):
    voter_id: i32 = 0
    voter_directory_id: Annotated[uuid, since(1)] = ZERO_UUID


@message(versions=(0, 1), flexible_since=0)
class LeaderChangeMessage(Message):
    """Versions 0–1, flexible: a leader was elected. v1 adds the directory ids of voters (KIP-853)."""

    version: i16 = 0
    leader_id: i32 = 0
    voters: list[Voter] = []
    granting_voters: list[Voter] = []


@message(versions=(0, 0), flexible_since=0)
class SnapshotHeaderRecord(Message):
    """Version 0, flexible: the first record of a snapshot."""

    version: i16 = 0
    last_contained_log_timestamp: i64 = 0


@message(versions=(0, 0), flexible_since=0)
class SnapshotFooterRecord(Message):
    """Version 0, flexible: the last record of a snapshot."""

    version: i16 = 0


@message(versions=(0, 0), flexible_since=0)
class KRaftVersionRecord(Message):
    """Version 0, flexible: the version of the quorum; 1 if its voters can change (KIP-853)."""

    version: i16 = 0
    k_raft_version: i16 = 0


class Endpoint(Structure):
    name: string = ""
    host: string = ""
    port: u16 = 0


class KRaftVersionFeature(Structure):
    min_supported_version: i16 = 0
    max_supported_version: i16 = 0


class RegisteredVoter(Structure):
    voter_id: i32 = 0
    voter_directory_id: uuid = ZERO_UUID
    endpoints: list[Endpoint] = []
    k_raft_version_feature: KRaftVersionFeature = msgspec.field(default_factory=KRaftVersionFeature)


@message(versions=(0, 0), flexible_since=0)
class VotersRecord(Message):
    """Version 0, flexible: the voters of the quorum and their addresses (KIP-853)."""

    version: i16 = 0
    voters: list[RegisteredVoter] = []
