package mirror

import (
	"context"
	"testing"
	"testing/synctest"
)

// TestUnlessDone checks that a look at a file does not delay the end of a run, even if the file server does
// not respond.
func TestUnlessDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		if found, ok := unlessDone(ctx, func() bool { return true }); !found || !ok {
			t.Errorf("a file that exists: %v, %v", found, ok)
		}
		responds := make(chan bool)
		defer close(responds)
		go func() {
			synctest.Wait()
			cancel()
		}()
		if found, ok := unlessDone(ctx, func() bool { return <-responds }); found || ok {
			t.Errorf("a server that does not respond: %v, %v", found, ok)
		}
	})
}
