//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload/tree"
)

// TestChooseIsInterrupted checks that an interruption ends the wait for patterns and lists that
// come from a pipe or a FIFO.
func TestChooseIsInterrupted(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	in, feed := io.Pipe()
	t.Cleanup(func() {
		_ = feed.Close()
		if f, err := os.OpenFile(fifo, os.O_RDWR, 0); err == nil { // ends the waits for a writer
			_ = f.Close()
		}
	})
	stopped := errors.New("stopped")
	for _, args := range [][]string{
		{"--include-from", "-"}, {"--exclude-from", "-"}, {"--include-from", fifo}, {"--exclude-from", fifo}, {"--files-from", fifo},
	} {
		var flags sourceFlags
		fs := pflag.NewFlagSet("cp", pflag.ContinueOnError)
		flags.add(fs)
		require.NoError(t, fs.Parse(args))
		var sources []string
		if !flags.list() {
			sources = []string{t.TempDir()}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(stopped)
		result := make(chan error, 1)
		go func() {
			_, err := flags.choose(ctx, stdio{in: in}, func(string) {}, sources, "gs://bkt/x", session.Spec{}, func(tree.Shard) bool { return true })
			result <- err
		}()
		select {
		case err := <-result:
			if err != stopped {
				t.Errorf("%q: error %v, want the cause of the interruption", args, err)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%q: the interruption has no effect", args)
		}
	}
}
