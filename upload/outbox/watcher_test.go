package outbox_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
	"gcsup/upload"
	"gcsup/upload/outbox"
)

// running runs an outbox in real time, on a server of its own, until the test ends.
func running(t *testing.T, opts outbox.Options) (srv *fakegcs.TestServer, dir string, box *outbox.Outbox) {
	t.Helper()
	srv = fakegcs.NewServer(t, &fakegcs.Options{CreateBuckets: true, NoMD5: true})
	dir = testsize.DiskDir(t)
	up, err := upload.New(srv.Client(), &upload.Options{Endpoint: srv.URL})
	require.NoError(t, err)
	ready := make(chan struct{})
	opts.Ready = func() { close(ready) }
	box, err = outbox.Open(dir, up, upload.Spec{Bucket: "bkt", Object: "in/"}, &opts)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- box.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, errors.Join(<-ended, box.Close()))
	})
	select {
	case <-ready:
	case <-time.After(30 * time.Second):
		t.Fatal("the outbox is not ready")
	}
	return srv, dir, box
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not %s", what)
		}
	}
}

// TestNotifications checks that new files are noticed without a scan: those that are renamed into the
// directory, those in new directories, and those that settle.
func TestNotifications(t *testing.T) {
	t.Parallel()
	srv, dir, box := running(t, outbox.Options{Rescan: time.Hour, Settle: 200 * time.Millisecond})
	source := filepath.Join(t.TempDir(), "source")
	require.NoError(t, os.WriteFile(source, random(100), 0o600))
	for _, name := range []string{"put", "new/put", "new/deep/er/put", "new/second"} {
		require.NoError(t, outbox.Put(dir, source, name))
		eventually(t, "uploaded: "+name, func() bool { _, ok := srv.Object("bkt", "in/"+name); return ok })
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "written"), random(50), 0o600))
	eventually(t, "uploaded: written", func() bool { _, ok := srv.Object("bkt", "in/written"); return ok })
	eventually(t, "empty", func() bool { return box.Status().Backlog.Files == 0 })
	if s := box.Status(); !s.Notified || s.Uploaded.Files != 5 {
		t.Errorf("status %+v", s)
	}
}
