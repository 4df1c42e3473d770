package transactions

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
)

type saramaClient struct{}

type saramaProducer struct{ producer sarama.SyncProducer }

func seeds() []string { return []string{os.Getenv("BOOTSTRAP")} }

func configured() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Transaction.Retry.Backoff = 20 * time.Millisecond
	config.Producer.Transaction.Retry.Max = 1000
	config.Net.MaxOpenRequests = 1
	return config
}

func (saramaClient) producer(t *testing.T, id string, timeout time.Duration) producer {
	config := configured()
	config.Producer.Transaction.ID = id
	config.Producer.Transaction.Timeout = timeout
	made, err := sarama.NewSyncProducer(seeds(), config)
	must(t, err)
	return saramaProducer{made}
}

func (p saramaProducer) begin() error { return p.producer.BeginTxn() }

func (p saramaProducer) send(topic string, values ...string) error {
	var messages []*sarama.ProducerMessage
	for _, value := range values {
		messages = append(messages, &sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(value)})
	}
	return p.producer.SendMessages(messages)
}

func (p saramaProducer) commit() error { return p.producer.CommitTxn() }

func (p saramaProducer) abort() error { return p.producer.AbortTxn() }

func (p saramaProducer) close() { _ = p.producer.Close() } // fails after an error of the transaction

func isFencedSarama(err error) bool {
	if err == nil {
		return false
	}
	for _, fenced := range []sarama.KError{sarama.ErrProducerFenced, sarama.ErrInvalidProducerEpoch} {
		if errors.Is(err, fenced) || strings.Contains(err.Error(), fenced.Error()) { // not always wrapped
			return true
		}
	}
	return false
}

// A copier runs one copy in the first claim that it gets.
type copier struct {
	copy func(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error
	err  error
}

func (c *copier) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (c *copier) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (c *copier) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	c.err = c.copy(session, claim)
	return nil
}

// inGroup joins a group, runs copy with the claim of the topic's partition, and leaves the group.
func inGroup(
	t *testing.T, group, topic string, copy func(sarama.ConsumerGroupSession, sarama.ConsumerGroupClaim) error,
) {
	config := configured()
	config.Producer = sarama.NewConfig().Producer
	joined, err := sarama.NewConsumerGroup(seeds(), group, config)
	must(t, err)
	defer joined.Close()
	handler := &copier{copy: copy}
	must(t, joined.Consume(limited(), []string{topic}, handler))
	must(t, handler.err)
}

func (c saramaClient) copyTwo(t *testing.T, id, group, source, target string, commit bool) {
	made := c.producer(t, id, long).(saramaProducer)
	defer made.close()
	inGroup(t, group, source, func(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
		first, second := <-claim.Messages(), <-claim.Messages()
		metadata := sarama.NewConsumerGroupMetadataFromSession(session, group, nil)
		end := made.abort
		if commit {
			end = made.commit
		}
		return errors.Join(
			made.begin(),
			made.send(target, string(first.Value), string(second.Value)),
			made.producer.AddMessageToTxnWithGroupMetadata(second, metadata, nil),
			end(),
		)
	})
}

func TestOffsetsOfAMemberThatLeftAreRefused(t *testing.T) {
	t.Run("sarama-at-level-"+os.Getenv("LEVEL"), func(t *testing.T) {
		name := strings.ReplaceAll(t.Name(), "/", "-")
		source := written(t, saramaClient{}, name, "0")
		var metadata *sarama.ConsumerGroupMetadata
		var read *sarama.ConsumerMessage
		inGroup(t, name, source, func(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
			read = <-claim.Messages()
			metadata = sarama.NewConsumerGroupMetadataFromSession(session, name, nil)
			return nil
		})

		made := saramaClient{}.producer(t, name, long).(saramaProducer)
		defer made.close()
		must(t, made.begin(), made.producer.AddMessageToTxnWithGroupMetadata(read, metadata, nil))
		if err := made.commit(); err == nil {
			t.Fatal("the offset is committed")
		}
		must(t, made.abort())
		expectOffset(t, name, source, -1)
	})
}

// saramaReads returns the first values that sarama's consumer of committed records reads.
func saramaReads(t *testing.T, topic string, count int) (values []string) {
	consumer, err := sarama.NewConsumer(seeds(), configured())
	must(t, err)
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
	must(t, err)
	defer partition.Close()
	for len(values) < count {
		values = append(values, string((<-partition.Messages()).Value))
	}
	return values
}
