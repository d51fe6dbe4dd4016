package bucketstore_test

import (
	"bytes"
	"context"
	"crypto/cipher"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/internal/checksum"
	"gcsup/internal/cloudtest"
	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/session/state/bucketstore"
	"gcsup/session/state/storetest"
)

// TestContract runs the suite of package storetest on a Store.
func TestContract(t *testing.T) {
	if testing.Short() {
		t.Skip("sends thousands of requests")
	}
	t.Run("unsealed", func(t *testing.T) {
		if testsize.Full(0, 1) == 1 {
			t.Skip("the same checks as with a key")
		}
		storetest.RunVirtual(t, func(t *testing.T) storetest.Place { return bucketPlace(t, nil) })
	})
	t.Run("sealed", func(t *testing.T) {
		storetest.RunVirtual(t, func(t *testing.T) storetest.Place { return bucketPlace(t, aead(1)) })
	})
}

// bucketPlace returns a place in a new bucket that also has objects which are not saved uploads.
func bucketPlace(t *testing.T, seal cipher.AEAD) storetest.Place {
	t.Helper()
	_, transport, stop := cloudtest.Serve(t, &fakegcs.Options{CreateBuckets: true})
	t.Cleanup(stop)
	client := newClient(t, transport)
	put := func(object string, content []byte) error {
		r := client.Insert(t.Context(), session.Spec{Bucket: "state", Object: object}, int64(len(content)), checksum.Update(0, content), bytes.NewReader(content))
		return r.Err
	}
	for _, object := range []string{"uploads/readme.txt", "uploads/sub/id.gcsup", "uploads/a b.gcsup", "uploads/.gcsup", "uploads/empty.gcsup", "id.gcsup"} {
		content := []byte("x")
		if object == "uploads/empty.gcsup" {
			content = nil // a lease of an upload that was not saved
		}
		if err := put(object, content); err != nil {
			t.Fatal(err)
		}
	}
	const ttl = 2 * time.Minute
	open := func(ahead time.Duration) storetest.Process {
		l := &line{RoundTripper: transport, cut: make(chan struct{})}
		opts := &bucketstore.Options{AEAD: seal, Unsealed: seal == nil, TTL: ttl}
		s, err := bucketstore.Open(t.Context(), newClient(t, l), "state", "uploads", opts)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		bucketstore.SetClock(s, func() (time.Time, time.Duration) { return time.Now().Add(ahead), time.Since(began) })
		return storetest.Process{Store: s, Kill: func() { close(l.cut) }, Pause: l.pause}
	}
	return storetest.Place{
		Open: func() storetest.Process { return open(0) },
		Put: func(id string, data []byte) error {
			if seal != nil {
				nonce := make([]byte, seal.NonceSize())
				data = slices.Concat([]byte("gcsup sealed 1\n"), nonce, seal.Seal(nil, nonce, data, []byte(id)))
			}
			return put("uploads/"+id+".gcsup", data)
		},
		TTL:       ttl,
		OpenAhead: open,
		Without:   []storetest.Feature{storetest.Quarantine},
	}
}

func newClient(t *testing.T, transport http.RoundTripper) *session.Client {
	t.Helper()
	client, err := session.NewClient(&http.Client{Transport: transport}, "http://gcs.test")
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// line is the network of a process, which a test can cut or pause.
type line struct {
	http.RoundTripper
	cut chan struct{} // closed when the process is dead

	mu   sync.Mutex
	held chan struct{} // closed when the process resumes; nil if it is not paused
}

var errCut = errors.New("the process is dead")

func (l *line) RoundTrip(req *http.Request) (*http.Response, error) {
	l.mu.Lock()
	held := l.held
	l.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-l.cut:
		case <-req.Context().Done():
			return nil, context.Cause(req.Context())
		}
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-l.cut:
			cancel(errCut)
		case <-stop:
		}
	}()
	select {
	case <-l.cut:
		return nil, errCut
	default:
	}
	return l.RoundTripper.RoundTrip(req.WithContext(ctx))
}

func (l *line) pause() (resume func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := make(chan struct{})
	l.held = held
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		close(held)
		l.held = nil
	}
}
