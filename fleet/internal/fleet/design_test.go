package fleet

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"gcsup/internal/require"
)

func design(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../DESIGN.md")
	require.NoError(t, err)
	return string(data)
}

// TestDesignQueue compares the stream, the consumer and the buckets in DESIGN.md with those of a new
// queue.
func TestDesignQueue(t *testing.T) {
	t.Parallel()
	text := design(t)
	q := newQueue(t)
	p := q.open.Load()
	s, c := p.stream.CachedInfo().Config, p.consumer.CachedInfo().Config
	w := bucketConfigOf(t, q, "workers")
	for _, row := range []string{
		fmt.Sprintf("| `%s` | retention `%s`, storage `%s`, max messages per subject `%d`, discard `%s` per subject `%v`, max message size `%d` |",
			s.Name, strings.ToLower(s.Retention.String()), strings.ToLower(s.Storage.String()), s.MaxMsgsPerSubject, strings.TrimPrefix(strings.ToLower(s.Discard.String()), "discard"), s.DiscardNewPerSubject, s.MaxMsgSize),
		fmt.Sprintf("| `%sRANDOM` | ack policy `%s`, max deliver `%d`, max ack pending `%d`, max waiting `%d`, default ack wait `%v` |",
			consumerPrefix, strings.TrimPrefix(strings.ToLower(c.AckPolicy.String()), "ack"), c.MaxDeliver, c.MaxAckPending, c.MaxWaiting, c.AckWait),
		fmt.Sprintf("| `%s` | TTL `%v`, storage `%s` |", strings.TrimPrefix(w.Name, "KV_"), w.MaxAge, strings.ToLower(w.Storage.String())),
		fmt.Sprintf("| stream `%s` | `%s` |", s.Name, q.subject("ID")),
	} {
		if !strings.Contains(text, row) {
			t.Errorf("DESIGN.md does not have the row\n%s", row)
		}
	}
	// Each bucket is in the first table.
	for name := range q.js.KeyValueStoreNames(t.Context()).Name() {
		if !strings.Contains(text, "| bucket `"+strings.TrimPrefix(name, "KV_")+"` |") {
			t.Errorf("DESIGN.md does not have the bucket %s", name)
		}
	}
}

// bucketConfigOf returns the configuration of the stream of a bucket.
func bucketConfigOf(t *testing.T, q *Queue, of string) jetstream.StreamConfig {
	t.Helper()
	s, err := q.js.Stream(context.Background(), "KV_"+q.bucket(of))
	require.NoError(t, err)
	return s.CachedInfo().Config
}

// TestDesignMessage decodes the message in DESIGN.md, and checks that the table has all
// fields of a file.
func TestDesignMessage(t *testing.T) {
	t.Parallel()
	m := regexp.MustCompile("(?s)```json\n(.*?)```").FindStringSubmatch(design(t))
	if m == nil {
		t.Fatal("DESIGN.md has no message")
	}
	task, err := decodeTask([]byte(m[1]))
	require.NoError(t, err)
	data, err := task.encode()
	require.NoError(t, err)
	for _, field := range regexp.MustCompile(`"(\w+)":`).FindAllStringSubmatch(string(data), -1) {
		if !strings.Contains(m[1], `"`+field[1]+`":`) {
			t.Errorf("the message in DESIGN.md does not have the field %s", field[1])
		}
	}
}
