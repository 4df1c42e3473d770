// Transactions of franz-go and sarama: each case runs with the producers of both.
//
// The environment names the broker (BOOTSTRAP) and the finalized level of transaction.version (LEVEL), which is a part
// of the tests' names. What is committed is read by franz-go, up to the last stable offset.
package transactions

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	long  = time.Minute
	short = time.Second
)

// A client makes producers, and copies records together with the offsets of its consumer group.
type client interface {
	// producer returns one that has its id and epoch; it fences older ones of the same transactional id.
	producer(t *testing.T, id string, timeout time.Duration) producer

	// copyTwo joins the group, reads the next two records of a topic with one partition, sends them to another topic
	// in a transaction with the group's offsets (KIP-447), ends it, and leaves the group.
	copyTwo(t *testing.T, id, group, source, target string, commit bool)
}

// A producer waits for the end of each step.
type producer interface {
	begin() error
	send(topic string, values ...string) error
	commit() error
	abort() error
	close()
}

var clients = map[string]client{"franz-go": franzGo{}, "sarama": saramaClient{}}

// forEachClient runs a case with both clients; its name is one for topics and transactional ids, too.
func forEachClient(t *testing.T, run func(t *testing.T, client client, name string)) {
	for name, client := range clients {
		t.Run(name+"-at-level-"+os.Getenv("LEVEL"), func(t *testing.T) {
			run(t, client, strings.ReplaceAll(t.Name(), "/", "-"))
		})
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func expectCommitted(t *testing.T, topic string, want ...string) {
	t.Helper()
	if got := committed(t, topic); !slices.Equal(got, want) {
		t.Fatalf("%s: %q is committed, not %q", topic, got, want)
	}
}

// written returns a topic with the given records, each committed by a producer of the client.
func written(t *testing.T, client client, topic string, values ...string) string {
	createTopic(t, topic)
	writer := client.producer(t, topic+"-writer", long)
	defer writer.close()
	must(t, writer.begin(), writer.send(topic, values...), writer.commit())
	return topic
}

func TestCommittedRecordsShowAndAbortedOnesDoNot(t *testing.T) {
	forEachClient(t, func(t *testing.T, client client, name string) {
		createTopic(t, name)
		producer := client.producer(t, name, long)
		defer producer.close()
		must(t, producer.begin(), producer.send(name, "a", "b"), producer.commit())
		must(t, producer.begin(), producer.send(name, "c"), producer.abort())
		must(t, producer.begin(), producer.send(name, "d"), producer.send(name, "e"), producer.commit())

		expectCommitted(t, name, "a", "b", "d", "e")
		if got := saramaReads(t, name, 4); !slices.Equal(got, []string{"a", "b", "d", "e"}) {
			t.Fatalf("sarama's consumer reads %q", got)
		}
	})
}

func TestFencedZombieCannotCommit(t *testing.T) {
	forEachClient(t, func(t *testing.T, client client, name string) {
		createTopic(t, name)
		zombie := client.producer(t, name, long)
		defer zombie.close()
		must(t, zombie.begin(), zombie.send(name, "of the zombie"))

		successor := client.producer(t, name, long)
		defer successor.close()
		must(t, successor.begin(), successor.send(name, "of its successor"))
		if err := zombie.commit(); !isFenced(err) {
			t.Fatalf("the zombie's commit: %v", err)
		}
		must(t, successor.commit())

		expectCommitted(t, name, "of its successor")
	})
}

func TestTimedOutTransactionIsAborted(t *testing.T) {
	forEachClient(t, func(t *testing.T, client client, name string) {
		createTopic(t, name)
		slow := client.producer(t, name, short)
		defer slow.close()
		must(t, slow.begin(), slow.send(name, "too late"))
		other := client.producer(t, name+"-other", long)
		defer other.close()
		must(t, other.begin(), other.send(name, "in time"), other.commit())

		for len(committed(t, name)) == 0 { // until the coordinator has ended the transaction that holds back the other
			time.Sleep(short / 10)
		}
		if err := slow.commit(); err == nil {
			t.Fatal("a transaction is committed after its time-out")
		}
		expectCommitted(t, name, "in time")
	})
}

func TestOpenTransactionHoldsBackLaterRecords(t *testing.T) {
	forEachClient(t, func(t *testing.T, client client, name string) {
		createTopic(t, name)
		opened := client.producer(t, name, long)
		defer opened.close()
		must(t, opened.begin(), opened.send(name, "first"))
		later := client.producer(t, name+"-later", long)
		defer later.close()
		must(t, later.begin(), later.send(name, "second"), later.commit())

		expectCommitted(t, name)
		must(t, opened.commit())
		expectCommitted(t, name, "first", "second")
	})
}

func TestCopyAndItsOffsetsEndTogether(t *testing.T) {
	forEachClient(t, func(t *testing.T, client client, name string) {
		source := written(t, client, name+"-source", "0", "1", "2")
		target, group := name+"-target", name+"-group"
		createTopic(t, target)

		client.copyTwo(t, name, group, source, target, false)
		expectCommitted(t, target)
		expectOffset(t, group, source, -1)

		client.copyTwo(t, name, group, source, target, true)
		expectCommitted(t, target, "0", "1")
		expectOffset(t, group, source, 2)
	})
}
