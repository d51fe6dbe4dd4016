//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gcsup/fakegcs"
	"gcsup/internal/cli/exit"
)

// TestCronMail checks that the command line of cron prints nothing, which cron would
// send by mail, if the directory has entries that are not files.
func TestCronMail(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("STORAGE_EMULATOR_HOST", fakegcs.NewServer(t, &fakegcs.Options{CreateBuckets: true}).URL)
	t.Setenv("GCSUP_STATE_DIR", filepath.Join(dir, "state"))
	source := filepath.Join(dir, "backups")
	if err := errors.Join(
		os.Mkdir(source, 0o777),
		os.WriteFile(filepath.Join(source, "dump.sql"), []byte("dump"), 0o666),
		os.Symlink(".", filepath.Join(source, "directory")),
		os.Symlink("gone", filepath.Join(source, "dangling")),
		os.Symlink("/etc/passwd", filepath.Join(source, "outside")),
		syscall.Mkfifo(filepath.Join(source, "fifo"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	args := slices.Clone(serviceCommands(t)["cron"])
	args[slices.Index(args, "/srv/photos")] = source
	for range 2 {
		if code, out, messages := gcsup(t, args...); code != exit.OK || out+messages != "" {
			t.Errorf("gcsup %s: exit code %d, output %q, messages %q", strings.Join(args, " "), code, out, messages)
		}
	}
}
