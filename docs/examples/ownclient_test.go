package examples

import (
	"context"
	"net/http"
	"os"
	"testing"
	"time"

	"gcsup/fakegcs/fakegcstest"
)

// TestOwnClient finds the faults of a client: none.
func TestOwnClient(t *testing.T) {
	const chunk = 1 << 20
	fakegcstest.CheckClient(t, 3*chunk, func(ctx context.Context, endpoint string, task fakegcstest.Task) error {
		data, err := os.ReadFile(task.File)
		if err != nil {
			return err
		}
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		c := &OwnClient{Endpoint: endpoint, Chunk: chunk, HTTP: &http.Client{
			Transport: transport, Timeout: 3 * time.Second,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}}
		return c.Upload(ctx, task.Bucket, task.Object, data)
	})
}
