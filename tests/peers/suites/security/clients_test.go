// TLS, client certificates and SASL of franz-go, right and wrong.
//
// The environment has the addresses of the listeners (PLAINTEXT, SSL, MTLS, SASL_PLAINTEXT, SASL_SSL, SCRAM_ONLY), the
// directory of the certificates (FILES), the password of the user alice (PASSWORD), and tokens (TOKEN_VALID and others).
package security

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const long = 20 * time.Second

var mechanisms = []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"}

// login returns a mechanism; the secret is a password, or the token of OAUTHBEARER.
func login(mechanism, user, secret string) kgo.Opt {
	made := map[string]sasl.Mechanism{
		"PLAIN":         plain.Auth{User: user, Pass: secret}.AsMechanism(),
		"SCRAM-SHA-256": scram.Auth{User: user, Pass: secret}.AsSha256Mechanism(),
		"SCRAM-SHA-512": scram.Auth{User: user, Pass: secret}.AsSha512Mechanism(),
		"OAUTHBEARER":   oauth.Auth{Token: secret}.AsMechanism(),
	}
	return kgo.SASL(made[mechanism])
}

func rightLogin(mechanism string) kgo.Opt {
	if mechanism == "OAUTHBEARER" {
		return login(mechanism, "", os.Getenv("TOKEN_VALID"))
	}
	return login(mechanism, "alice", os.Getenv("PASSWORD"))
}

func file(name string) string { return filepath.Join(os.Getenv("FILES"), name) }

// trusting returns the configuration of a client that trusts an authority, and has no certificate.
func trusting(t *testing.T, authority string) *tls.Config {
	text, err := os.ReadFile(file(authority))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &tls.Config{RootCAs: pool}
}

// showing returns one that shows a certificate, whether or not the broker names its authority.
func showing(t *testing.T, name string) *tls.Config {
	certificate, err := tls.LoadX509KeyPair(file(name), file(name))
	if err != nil {
		t.Fatal(err)
	}
	config := trusting(t, "ca.pem")
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil }
	return config
}

func newClient(t *testing.T, listener string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	options = append(options, kgo.SeedBrokers(os.Getenv(listener)), kgo.RequestRetries(0), kgo.AllowAutoTopicCreation())
	client, err := kgo.NewClient(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), long)
	t.Cleanup(cancel)
	return ctx
}

// isServed writes records and reads them.
func isServed(t *testing.T, listener string, options ...kgo.Opt) {
	t.Helper()
	topic := strings.ReplaceAll(t.Name(), "/", "-")
	from := map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}
	// The first request for a topic that does not exist may be answered before it does.
	client := newClient(t, listener, append(options, kgo.RequestRetries(5), kgo.ConsumePartitions(from))...)
	for _, value := range []string{"one", "two", "three"} {
		record := &kgo.Record{Topic: topic, Value: []byte(value)}
		if err := client.ProduceSync(limited(t), record).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	var read []string
	for len(read) < 3 {
		fetches := client.PollFetches(limited(t))
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(record *kgo.Record) { read = append(read, string(record.Value)) })
	}
	if got := strings.Join(read, " "); got != "one two three" {
		t.Fatalf("read %q", got)
	}
}

// refusal connects, and returns the error.
func refusal(t *testing.T, listener string, options ...kgo.Opt) error {
	t.Helper()
	err := newClient(t, listener, options...).Ping(limited(t))
	if err == nil {
		t.Fatal("the client is served")
	}
	return err
}
