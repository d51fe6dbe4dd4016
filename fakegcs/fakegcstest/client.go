package fakegcstest

import (
	"context"
	"testing"
	"time"

	"gcsup/internal/clientcheck"
)

// Task is what a client must do in [CheckClient]: upload File as Object to Bucket.
type Task struct {
	File           string // path
	Bucket, Object string
	Dir            string // for what the client keeps; the second call for the same object has the same
}

// CheckClient finds the faults of a client that uploads to Cloud Storage. It calls upload in a
// subtest for each script, with the URL of an emulator that has a fault of its own: a reply that is
// lost, a session that is gone, and so on. upload must upload the file, or return an error. In some
// scripts ctx ends in the middle, as if the program were killed, and upload is called again; a client
// that does not resume may start over.
//
// A subtest fails if the object is not right, if upload did not return what happened, or if its
// requests did not keep to the protocol. The message has the requests, and the fact about Cloud
// Storage that decides. A script that the client does not meet is skipped. The subtests run in
// parallel.
//
// size is the size of most sources, a multiple of 256 KiB, and best of three chunks of the client or
// more. 0 is 24 MiB.
//
// gcsup emulator check-client does the same for a client that is a command.
func CheckClient(t *testing.T, size int64, upload func(ctx context.Context, endpoint string, task Task) error) {
	t.Helper()
	limit := clientcheck.DefaultLimit
	if deadline, ok := t.Deadline(); ok { // a client that does not end must not end the test binary
		limit = min(limit, max(time.Until(deadline)/4, time.Second))
	}
	client := func(ctx context.Context, k clientcheck.Task) error {
		return upload(ctx, k.Endpoint, Task{File: k.File, Bucket: k.Bucket, Object: k.Object, Dir: k.Dir})
	}
	for _, s := range clientcheck.Scripts() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			v, list, err := clientcheck.Run(t.Context(), client, s, clientcheck.Options{Size: size, Limit: limit})
			if err != nil {
				t.Fatal(err)
			}
			r := clientcheck.Result{Script: s, Verdict: v, Exchanges: list}
			switch v.Outcome() {
			case clientcheck.Faulty:
				t.Error(r.Text())
			case clientcheck.Uncounted:
				t.Skip(r.Text())
			case clientcheck.Unmet:
				t.Skip("the client does not meet this situation")
			}
		})
	}
}
