package examples

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"gcsup/session/state"
	"gcsup/upload"
)

func TestRelay(t *testing.T) {
	data := content(10 << 20)
	etag := `"1"`
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", etag)
		http.ServeContent(w, r, "file", time.Time{}, bytes.NewReader(data))
	}))
	defer web.Close()
	srv := emulator(t, cutAfter(4<<20))
	dir := t.TempDir()
	spec := upload.Spec{Bucket: "mirror", Object: "file"}

	// process simulates one process until it ends or fails.
	process := func(interrupt bool) (*upload.Result, error) {
		store, err := state.OpenDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		ctx, end := context.WithCancel(t.Context())
		defer end()
		up := uploader(t, srv, upload.Options{Store: store, Observer: func(e upload.Event) {
			if interrupt && e.Kind == upload.Waiting {
				end()
			}
		}})
		return Relay(ctx, up, web.Client(), web.URL, spec)
	}
	var interrupted *upload.InterruptedError
	if _, err := process(true); !errors.As(err, &interrupted) || !interrupted.Resumable {
		t.Fatalf("Relay = %v, want an interruption", err)
	}
	result, err := process(false)
	if err != nil {
		t.Fatal(err)
	}
	if result.ResumedFrom != 4<<20 || result.BytesSent != 6<<20 {
		t.Errorf("resumed from %d and sent %d bytes, want 4 MiB and 6 MiB", result.ResumedFrom, result.BytesSent)
	}
	wantObject(t, srv, "mirror", "file", data)
}
