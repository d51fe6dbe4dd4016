package main

import (
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// TestExitCodeOfNATS checks that a command can be run again if NATS is not ready.
func TestExitCodeOfNATS(t *testing.T) {
	for _, err := range []error{
		nats.ErrNoServers, nats.ErrTimeout, nats.ErrNoResponders, jetstream.ErrNoStreamResponse, os.ErrDeadlineExceeded, io.EOF,
		&jetstream.APIError{Code: 503, ErrorCode: 10008, Description: "JetStream system temporarily unavailable"},
	} {
		if code := exitCodeOf(fmt.Errorf("NATS: %w", err)); code != exitTemporary {
			t.Errorf("%v: exit code %d, want %d", err, code, exitTemporary)
		}
	}
	if code := exitCodeOf(&jetstream.APIError{Code: 500}); code != exitIO {
		t.Errorf("an internal error of JetStream: exit code %d, want %d", code, exitIO)
	}
}
