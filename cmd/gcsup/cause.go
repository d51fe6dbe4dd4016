package main

import (
	"regexp"
	"strings"

	"gcsup/internal/cli/printable"
)

// cause describes why an upload waits, in at most 18 columns, or 7 on a narrow
// terminal. It contains no addresses.
type cause struct{ text, short string }

// stateSlow is the cause of bucketstore.ErrSlow.
var stateSlow = cause{"state bucket slow", "slow"}

// causes maps the ends of messages of the operating system and of package net to
// causes.
var causes = []struct {
	part string
	cause
}{
	{"connection reset", cause{"connection reset", "reset"}},
	{"forcibly closed", cause{"connection reset", "reset"}}, // Windows
	{"connection refused", cause{"connection refused", "refused"}},
	{"actively refused", cause{"connection refused", "refused"}}, // Windows
	{"broken pipe", cause{"connection closed", "closed"}},
	{"EOF", cause{"connection closed", "closed"}},
	{"closed network connection", cause{"connection closed", "closed"}},
	{"server closed", cause{"connection closed", "closed"}},
	{"no such host", cause{"host not found", "no host"}},
	{"server misbehaving", cause{"name server fails", "no host"}},
	{"unreachable", cause{"no network", "no net"}},
	{"no route to host", cause{"no network", "no net"}},
	{"certificate", cause{"TLS error", "TLS"}},
	{"tls:", cause{"TLS error", "TLS"}},
	{"http2:", cause{"HTTP/2 error", "HTTP/2"}},
	{"slower than the lease", stateSlow},
	{"stall", cause{"stalled", "stalled"}},
	{"lags behind", cause{"stalled", "stalled"}},
	{"no reply within", cause{"no reply", "silent"}},
	{"timeout", cause{"timeout", "timeout"}},
	{"timed out", cause{"timeout", "timeout"}},
	{"deadline exceeded", cause{"timeout", "timeout"}},
}

var (
	statusCode = regexp.MustCompile(`^[1-5]\d\d(?:$|[ ;])`)
	// address matches HOST:PORT, an IP address, and an arrow between two of them.
	address = regexp.MustCompile(`\[[0-9a-fA-F:.%a-z]+\](:\d+)?|\S*\d+\.\d+\.\d+\.\d+\S*|\S+:\d+\b|->`)
)

// causeOf shortens the cause of an event.
func causeOf(text string) cause {
	if code := statusCode.FindString(text); code != "" {
		return cause{code[:3], code[:3]}
	}
	for _, c := range causes {
		if strings.Contains(text, c.part) {
			return c.cause
		}
	}
	parts := strings.Split(address.ReplaceAllString(printable.Line(text), ""), ": ")
	last := strings.Join(strings.Fields(parts[len(parts)-1]), " ")
	if last == "" {
		last = "network error"
	}
	return cause{shorten(last, 18), shorten(last, 7)}
}

// probing reports whether an upload waits for another one that probes the service.
func probing(text string) bool { return strings.Contains(text, "another upload is probing") }
