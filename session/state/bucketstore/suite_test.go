package bucketstore_test

import (
	"bytes"
	"crypto/cipher"
	"slices"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/internal/checksum"
	"gcsup/internal/cloudtest"
	"gcsup/internal/require"
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
		require.NoError(t, put(object, content))
	}
	const ttl = 2 * time.Minute
	open := func(ahead time.Duration) storetest.Process {
		l := &line{RoundTripper: transport, cut: make(chan struct{})}
		opts := &bucketstore.Options{AEAD: seal, Unsealed: seal == nil, TTL: ttl}
		s, err := bucketstore.Open(t.Context(), newClient(t, l), "state", "uploads", opts)
		require.NoError(t, err)
		began := time.Now()
		bucketstore.SetClock(s, func() (time.Time, time.Duration) { return time.Now().Add(ahead), time.Since(began) })
		return storetest.Process{Store: s, Kill: func() { close(l.cut) }, Pause: func() func() { l.suspend(); return l.wake }}
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
