package security

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestTLS(t *testing.T) {
	for name, version := range map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13} {
		t.Run(name, func(t *testing.T) {
			config := trusting(t, "ca.pem")
			config.MinVersion, config.MaxVersion = version, version
			isServed(t, "SSL", kgo.DialTLSConfig(config))
		})
		t.Run("with-certificate-"+name, func(t *testing.T) {
			config := showing(t, "client.pem")
			config.MinVersion, config.MaxVersion = version, version
			isServed(t, "MTLS", kgo.DialTLSConfig(config))
		})
	}
}

func TestTLSRefused(t *testing.T) {
	t.Run("unknown-authority", func(t *testing.T) {
		err := refusal(t, "SSL", kgo.DialTLSConfig(trusting(t, "foreign-ca.pem")))
		expectAs[x509.UnknownAuthorityError](t, err)
	})
	t.Run("wrong-name", func(t *testing.T) {
		config := trusting(t, "ca.pem")
		config.ServerName = "elsewhere.example"
		expectAs[x509.HostnameError](t, refusal(t, "SSL", kgo.DialTLSConfig(config)))
	})
	t.Run("old-version", func(t *testing.T) {
		config := trusting(t, "ca.pem")
		config.MinVersion, config.MaxVersion = tls.VersionTLS11, tls.VersionTLS11
		expectText(t, refusal(t, "SSL", kgo.DialTLSConfig(config)), "protocol version not supported")
	})
	t.Run("no-tls", func(t *testing.T) { refusal(t, "SSL") })
	t.Run("tls-at-a-plaintext-listener", func(t *testing.T) {
		refusal(t, "PLAINTEXT", kgo.DialTLSConfig(trusting(t, "ca.pem")))
	})
	for version, number := range map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13} {
		certificates := map[string]string{"foreign": "unknown certificate authority", "expired": "expired certificate"}
		for name, text := range certificates {
			t.Run(name+"-certificate-"+version, func(t *testing.T) {
				config := showing(t, name+"-client.pem")
				config.MinVersion, config.MaxVersion = number, number
				expectText(t, refusal(t, "MTLS", kgo.DialTLSConfig(config)), text)
			})
		}
		t.Run("no-certificate-"+version, func(t *testing.T) {
			config := trusting(t, "ca.pem")
			config.MinVersion, config.MaxVersion = number, number
			text := map[string]string{"1.2": "handshake failure", "1.3": "certificate required"}[version]
			expectText(t, refusal(t, "MTLS", kgo.DialTLSConfig(config)), text)
		})
	}
}

// forEachListener runs a case on both listeners with SASL.
func forEachListener(t *testing.T, run func(t *testing.T, listener string, options ...kgo.Opt)) {
	t.Run("plaintext", func(t *testing.T) { run(t, "SASL_PLAINTEXT") })
	t.Run("tls", func(t *testing.T) { run(t, "SASL_SSL", kgo.DialTLSConfig(trusting(t, "ca.pem"))) })
}

func TestSASL(t *testing.T) {
	forEachListener(t, func(t *testing.T, listener string, options ...kgo.Opt) {
		for _, mechanism := range mechanisms {
			t.Run(mechanism, func(t *testing.T) { isServed(t, listener, append(options, rightLogin(mechanism))...) })
		}
	})
}

func TestSASLRefused(t *testing.T) {
	forEachListener(t, func(t *testing.T, listener string, options ...kgo.Opt) {
		for _, mechanism := range mechanisms[:3] {
			wrong := map[string]kgo.Opt{
				"wrong-password": login(mechanism, "alice", "wrong"),
				"unknown-user":   login(mechanism, "nobody", os.Getenv("PASSWORD")),
			}
			for name, login := range wrong {
				t.Run(mechanism+"-"+name, func(t *testing.T) {
					expect(t, refusal(t, listener, append(options, login)...), kerr.SaslAuthenticationFailed)
				})
			}
		}
		for _, kind := range []string{"EXPIRED", "OF_ANOTHER_ISSUER", "FOR_ANOTHER_AUDIENCE"} {
			t.Run("OAUTHBEARER-"+kind, func(t *testing.T) {
				token := os.Getenv("TOKEN_" + kind)
				// franz-go does not read the broker's reason.
				err := refusal(t, listener, append(options, login("OAUTHBEARER", "", token))...)
				expectText(t, err, "unexpected data in oauth response")
			})
		}
		t.Run("no-login", func(t *testing.T) { refusal(t, listener, options...) })
	})
	for _, mechanism := range []string{"PLAIN", "OAUTHBEARER"} {
		t.Run("not-enabled-"+mechanism, func(t *testing.T) {
			expect(t, refusal(t, "SCRAM_ONLY", rightLogin(mechanism)), kerr.UnsupportedSaslMechanism)
		})
	}
	t.Run("no-sasl-listener", func(t *testing.T) { refusal(t, "PLAINTEXT", rightLogin("PLAIN")) })
}

func expect(t *testing.T, err, wanted error) {
	t.Helper()
	if !errors.Is(err, wanted) {
		t.Fatalf("%T: %v", err, err)
	}
}

func expectAs[E error](t *testing.T, err error) {
	t.Helper()
	var wanted E
	if !errors.As(err, &wanted) {
		t.Fatalf("%T: %v", err, err)
	}
}

func expectText(t *testing.T, err error, text string) {
	t.Helper()
	if !strings.Contains(err.Error(), text) {
		t.Fatalf("%T: %v", err, err)
	}
}
