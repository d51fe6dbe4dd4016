//go:build unix

package e2e_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"gcsup/fakegcs/faults"
)

// TestSharedStopped stops a process for longer than its lease. If another process
// resumed the upload meanwhile, the first one begins no request when it continues.
// Otherwise it finishes the upload.
func TestSharedStopped(t *testing.T) {
	t.Parallel()
	for _, taken := range []bool{true, false} {
		name := "no process took the upload"
		if taken {
			name = "another process took the upload"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const size = 10 << 20
			dir := t.TempDir()
			key, path := filepath.Join(dir, "key"), filepath.Join(dir, "a.bin")
			secret := make([]byte, 32)
			_, _ = rand.Read(secret)
			if err := os.WriteFile(key, secret, 0o600); err != nil {
				t.Fatal(err)
			}
			content := source(t, path, size, 1)
			s := newLeaseService(t)
			start := func(process int, more ...string) *child {
				args := append([]string{"cp", "--json", "--chunk-size=1MiB", "--max-wait=200ms", path, "gs://data/a"}, more...)
				return run(t, environment(), s.shared(process, key, args)...)
			}
			first := start(1, "--limit-rate=4MiB")
			if !until(first.Done(), time.Millisecond, func() bool { return s.committed(1) >= 2<<20 }) {
				t.Fatal(first.output())
			}
			first.Signal(syscall.SIGSTOP)
			stopped := time.Now()
			time.Sleep(sharedLease / 2) // the second one must wait only for the rest of the lease
			if taken {
				second := start(2)
				if second.Wait() != 0 {
					t.Fatal(second.output())
				}
				if r := second.result(); r.ResumedFrom < 2<<20 || r.BytesResent != 0 {
					t.Errorf("the second: %+v", r)
				}
			}
			time.Sleep(time.Until(stopped.Add(sharedLease + sharedLease/2)))
			before := s.count(1)
			first.Signal(syscall.SIGCONT)
			if taken {
				if first.Wait() != 75 || first.result().kind() != "in_use" {
					t.Error(first.output())
				}
				// The request that was under way ends now.
				if n := s.count(1) - before; n > 1 {
					t.Errorf("the first one made %d requests for the upload when it continued", n)
				}
			} else if first.Wait() != 0 {
				t.Error(first.output())
			}
			if got, err := s.gcs.ReadObject("data", "a"); err != nil || !bytes.Equal(got, content) {
				t.Errorf("the object differs from the source (%v)", err)
			}
			starts := 0
			for _, q := range s.requestsOf(0) {
				if q.Op == faults.OpStart {
					starts++
				}
			}
			if starts != 1 {
				t.Errorf("%d sessions, want 1", starts)
			}
		})
	}
}

// requestsOf returns the requests of a process in the bucket data, 0 for all.
func (s *leaseService) requestsOf(process int) (of []sharedRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.log {
		if q.Bucket == "data" && (process == 0 || q.process == process) {
			of = append(of, q)
		}
	}
	return of
}

// count returns the number of requests of a process in the bucket data.
func (s *leaseService) count(process int) int { return len(s.requestsOf(process)) }

// committed returns the committed offset that a process knows.
func (s *leaseService) committed(process int) (offset int64) {
	for _, q := range s.requestsOf(process) {
		if n, ok := q.committed(); ok {
			offset = max(offset, n)
		}
	}
	return offset
}

// committed returns the committed offset in a reply.
func (q *sharedRequest) committed() (int64, bool) {
	var last int64
	if _, err := fmt.Sscanf(q.Range, "bytes=0-%d", &last); err != nil || q.Status == 0 {
		return 0, false
	}
	return last + 1, true
}
