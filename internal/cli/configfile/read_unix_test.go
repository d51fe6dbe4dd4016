//go:build unix

package configfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gcsup/internal/cli/configfile"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(path, []byte("jobs: 8\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]string{
		0o600: "", 0o644: "", 0o444: "",
		0o664: "others can write to " + path + " (mode 0664), and could redirect uploads; chmod go-w it",
		0o622: "others can write to " + path + " (mode 0622), and could redirect uploads; chmod go-w it",
		0o606: "others can write to " + path + " (mode 0606), and could redirect uploads; chmod go-w it",
	} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
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
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, 1234, -1); err != nil {
			t.Fatal(err)
		}
		if _, risk, err := configfile.Read(path); err != nil || risk == nil || !strings.Contains(risk.Error(), "belongs to another user (UID 1234)") {
			t.Errorf("the file of another user: risk %v, error %v", risk, err)
		}
	}
}

// TestReadRefuses checks what is refused. A FIFO must not block.
func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	fifo, large := filepath.Join(dir, "fifo"), filepath.Join(dir, "large")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(large, make([]byte, 1<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
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
