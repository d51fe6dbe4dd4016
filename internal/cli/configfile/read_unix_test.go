//go:build unix

package configfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gcsup/internal/cli/configfile"
	"gcsup/internal/require"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte("jobs: 8\n"), 0o600))
	for mode, want := range map[os.FileMode]string{
		0o600: "", 0o644: "", 0o444: "",
		0o664: "others can write to " + path + " (mode 0664), and could redirect uploads; chmod go-w it",
		0o622: "others can write to " + path + " (mode 0622), and could redirect uploads; chmod go-w it",
		0o606: "others can write to " + path + " (mode 0606), and could redirect uploads; chmod go-w it",
	} {
		require.NoError(t, os.Chmod(path, mode))
		got := ""
		data, risk, err := configfile.Read(path)
		if risk != nil {
			got = risk.Error()
		}
		if err != nil || string(data) != "jobs: 8\n" || got != want {
			t.Errorf("%04o: %q, risk %q, error %v; want %q", mode, data, got, err, want)
		}
	}
	if os.Getuid() == 0 {
		require.NoError(t, os.Chmod(path, 0o600))
		require.NoError(t, os.Chown(path, 1234, -1))
		if _, risk, err := configfile.Read(path); err != nil || risk == nil || !strings.Contains(risk.Error(), "belongs to another user (UID 1234)") {
			t.Errorf("the file of another user: risk %v, error %v", risk, err)
		}
	}
}

// TestReadRefuses checks what is refused. A FIFO must not block.
func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	fifo, large := filepath.Join(dir, "fifo"), filepath.Join(dir, "large")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	require.NoError(t, os.WriteFile(large, make([]byte, 1<<20+1), 0o600))
	for path, want := range map[string]string{
		fifo:        "fifo is a directory, a pipe or a device: want a file",
		dir:         "is a directory, a pipe or a device: want a file",
		"/dev/zero": "/dev/zero is a directory, a pipe or a device: want a file",
		large:       "large: want at most 1048576 bytes",
		fifo + "/x": "not a directory",
		dir + "/x":  "no such file or directory",
	} {
		if _, _, err := configfile.Read(path); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", path, err, want)
		}
	}
}
