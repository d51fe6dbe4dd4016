//go:build unix

package process_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"

	"gcsup/internal/cli/process"
	"gcsup/internal/require"
)

// TestRun sends a signal to a command.
func TestRun(t *testing.T) {
	self, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		var cause error
		code := process.Run(func(ctx context.Context) int {
			if err := self.Signal(s); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			cause = context.Cause(ctx)
			return 7
		})
		if want := "stopped by signal: " + s.String(); code != 7 || cause.Error() != want || !errors.Is(cause, context.Canceled) {
			t.Errorf("%v: exit code %d, cause %v, want 7, %s", s, code, cause, want)
		}
	}
}
