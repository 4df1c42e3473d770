package transactions

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type franzGo struct{}

type franzGoProducer struct{ client *kgo.Client }

func limited() context.Context {
	ctx, _ := context.WithTimeout(context.Background(), long) // the process ends soon after
	return ctx
}

func newClient(t *testing.T, options ...kgo.Opt) *kgo.Client {
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(os.Getenv("BOOTSTRAP")))...)
	must(t, err)
	return client
}

func (franzGo) producer(t *testing.T, id string, timeout time.Duration) producer {
	client := newClient(t, kgo.TransactionalID(id), kgo.TransactionTimeout(timeout))
	_, _, err := client.ProducerID(limited()) // without this the first record asks for the id
	must(t, err)
	return franzGoProducer{client}
}

func records(topic string, values ...string) (made []*kgo.Record) {
	for _, value := range values {
		made = append(made, &kgo.Record{Topic: topic, Value: []byte(value)})
	}
	return made
}

func (p franzGoProducer) begin() error { return p.client.BeginTransaction() }

func (p franzGoProducer) send(topic string, values ...string) error {
	return p.client.ProduceSync(limited(), records(topic, values...)...).FirstErr()
}

func (p franzGoProducer) commit() error { return p.client.EndTransaction(limited(), kgo.TryCommit) }

func (p franzGoProducer) abort() error { return p.client.EndTransaction(limited(), kgo.TryAbort) }

func (p franzGoProducer) close() { p.client.Close() }

func isFenced(err error) bool {
	return errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch) || isFencedSarama(err)
}

func (franzGo) copyTwo(t *testing.T, id, group, source, target string, commit bool) {
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(os.Getenv("BOOTSTRAP")),
		kgo.TransactionalID(id),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(source),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
	)
	must(t, err)
	defer session.Close()
	must(t, session.Begin())
	var read []*kgo.Record
	for len(read) < 2 {
		fetches := session.PollRecords(limited(), 2-len(read))
		must(t, fetches.Err())
		read = append(read, fetches.Records()...)
	}
	must(t, session.ProduceSync(limited(), records(target, string(read[0].Value), string(read[1].Value))...).FirstErr())
	ended, err := session.End(limited(), kgo.TransactionEndTry(commit))
	must(t, err)
	if ended != commit {
		t.Fatalf("the session ended with commit %v instead of %v", ended, commit)
	}
}

func createTopic(t *testing.T, name string) {
	t.Helper()
	client := newClient(t)
	defer client.Close()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 1, 1
	request := kmsg.NewPtrCreateTopicsRequest()
	request.Topics = append(request.Topics, topic)
	response, err := request.RequestWith(limited(), client)
	must(t, err)
	must(t, kerr.ErrorForCode(response.Topics[0].ErrorCode))
}

// lastStableOffset of the only partition, exclusive.
func lastStableOffset(t *testing.T, client *kgo.Client, topic string) int64 {
	partition := kmsg.NewListOffsetsRequestTopicPartition()
	partition.Timestamp = -1
	asked := kmsg.NewListOffsetsRequestTopic()
	asked.Topic, asked.Partitions = topic, append(asked.Partitions, partition)
	request := kmsg.NewPtrListOffsetsRequest()
	request.ReplicaID, request.IsolationLevel = -1, 1
	request.Topics = append(request.Topics, asked)
	response, err := request.RequestWith(limited(), client)
	must(t, err)
	found := response.Topics[0].Partitions[0]
	must(t, kerr.ErrorForCode(found.ErrorCode))
	return found.Offset
}

// committed returns the values that a consumer of committed records reads up to the last stable offset. Control records
// are read, too: before that offset is always one, because all producers are transactional.
func committed(t *testing.T, topic string) (values []string) {
	t.Helper()
	client := newClient(
		t,
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(),
	)
	defer client.Close()
	end := lastStableOffset(t, client, topic)
	for position := int64(0); position < end; {
		fetches := client.PollFetches(limited())
		must(t, fetches.Err())
		for _, record := range fetches.Records() {
			if record.Offset < end && !record.Attrs.IsControl() {
				values = append(values, string(record.Value))
			}
			position = record.Offset + 1
		}
	}
	return values
}

func expectOffset(t *testing.T, group, topic string, want int64) {
	t.Helper()
	client := newClient(t)
	defer client.Close()
	asked := kmsg.NewOffsetFetchRequestGroup()
	asked.Group = group
	askedTopic := kmsg.NewOffsetFetchRequestGroupTopic()
	askedTopic.Topic, askedTopic.Partitions = topic, []int32{0}
	asked.Topics = append(asked.Topics, askedTopic)
	request := kmsg.NewPtrOffsetFetchRequest()
	request.RequireStable = true
	request.Groups = append(request.Groups, asked)
	response, err := request.RequestWith(limited(), client)
	must(t, err)
	must(t, kerr.ErrorForCode(response.Groups[0].ErrorCode))
	found := response.Groups[0].Topics[0].Partitions[0]
	must(t, kerr.ErrorForCode(found.ErrorCode))
	if found.Offset != want {
		t.Fatalf("the group has committed %d, not %d", found.Offset, want)
	}
}
