package upload_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"gcsup/backoff"
	"gcsup/fakegcs/fakegcstest"
	"gcsup/session/state"
	"gcsup/upload"
)

// TestCheckClient checks the library as fakegcstest checks any client.
func TestCheckClient(t *testing.T) {
	fakegcstest.CheckClient(t, func(ctx context.Context, endpoint string, task fakegcstest.Task) (err error) {
		store, err := state.OpenDir(task.Dir)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		transport := upload.NewTransport(nil)
		defer transport.CloseIdleConnections()
		up, err := upload.New(&http.Client{Transport: transport}, &upload.Options{
			Endpoint: endpoint, Store: store, ChunkSize: 16 << 20, StallTimeout: 2 * time.Second,
			Policy: backoff.Policy{Initial: 10 * time.Millisecond, Maximum: 100 * time.Millisecond},
		})
		if err != nil {
			return err
		}
		_, err = up.File(ctx, task.File, upload.Spec{Bucket: task.Bucket, Object: task.Object})
		return err
	})
}
