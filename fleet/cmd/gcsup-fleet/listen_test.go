//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gcsup/internal/require"
)

// TestListenAgain checks that an emulator gets the port of the last one.
func TestListenAgain(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), portFile)
	listen := func() (addr string, end func()) {
		t.Helper()
		ln, err := listenAgain(file)
		require.NoError(t, err)
		return ln.Addr().String(), func() { _ = ln.Close() }
	}
	first, end := listen()
	if taken, end := listen(); taken == first {
		t.Error("two emulators have one port")
	} else {
		end()
	}
	end()
	want, end := listen()
	end()
	if again, end := listen(); again != want || again == first {
		t.Errorf("listens on %s, want %s, the last port", again, want)
	} else {
		end()
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil { // a crash
		t.Fatal(err)
	}
	addr, end := listen()
	defer end()
	if !strings.HasPrefix(addr, "127.0.0.1:") {
		t.Errorf("listens on %s, want 127.0.0.1", addr)
	}
}
