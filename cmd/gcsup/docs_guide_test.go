//go:build linux

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
)

// TestGuide runs the commands of docs/how-to/guide.md in their order, as a user who has one bucket after the
// other. The part about moving an upload begins with an upload that was interrupted, whose ID
// replaces the word ID. gcloud does nothing, ssh runs its command with another state directory, and
// timeout interrupts its command when the outbox is empty, however long that takes.
func TestGuide(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	page, err := os.ReadFile("../../docs/how-to/guide.md")
	if err != nil {
		t.Fatal(err)
	}
	srv := fakegcs.NewServer(t, &fakegcs.Options{CreateBuckets: true})
	home := t.TempDir()
	bin := filepath.Join(home, "bin")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(errors.Join(
		os.MkdirAll(bin, 0o700), os.MkdirAll(filepath.Join(home, "photos", "2026"), 0o700),
		os.WriteFile(filepath.Join(bin, "gcloud"), []byte("#!/bin/sh\n"), 0o700),
		os.WriteFile(filepath.Join(bin, "ssh"), []byte("#!/bin/sh\nshift\nexport GCSUP_STATE_DIR=$HOME/other\nexec \"$@\"\n"), 0o700),
		os.WriteFile(filepath.Join(bin, "timeout"), []byte("#!/bin/sh\nshift 4\n\"$@\" &\nwhile [ -e out/disk.img ]; do sleep 0.1; done\nkill -INT $!\nwait $!\n"), 0o700),
		os.WriteFile(filepath.Join(home, "photos", "2026", "1.jpg"), []byte("one"), 0o600),
		os.WriteFile(filepath.Join(home, "photos", "2026", "2.jpg"), []byte("two"), 0o600)))
	shell := func(script string) string {
		t.Helper()
		cmd := exec.Command("bash", "-e", "-c", script)
		cmd.Dir = home
		cmd.Env = []string{"HOME=" + home, "PATH=" + bin + ":" + os.Getenv("PATH"), "STORAGE_EMULATOR_HOST=" + srv.URL, "GORACE=atexit_sleep_ms=20 exitcode=166"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s\n%v\n%s", script, err, out)
		}
		return string(out)
	}
	blocks := 0
	for _, part := range strings.Split(string(page), "\n## ")[1:] {
		heading, body, _ := strings.Cut(part, "\n")
		id := ""
		if heading == "Move an unfinished upload" {
			must(srv.AddFaults(faults.Fault{Match: faults.Match{Op: faults.OpFinalize}, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}}))
			shell("gcsup cp -q --retry-for 1ms disk.img gs://my-bucket/moved.img 2>/dev/null || test $? = 75")
			id = strings.Fields(shell("gcsup uploads list | tail -n +2"))[0]
		}
		for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```").FindAllStringSubmatch(body, -1) {
			blocks++
			shell(regexp.MustCompile(`\bID\b`).ReplaceAllString(block[1], id))
		}
	}
	if blocks < 10 {
		t.Errorf("found only %d blocks", blocks)
	}
	for _, object := range []string{
		"backups/disk.img", "photos/2026/1.jpg", "album/photos/2026/1.jpg", "album/2026/2.jpg", "found/photos/2026/1.jpg",
		"photos.tar", "photos-2.tar", "in/disk.img", "moved.img", "shared.img", "album2/2026/1.jpg", "album2/2026/2.jpg",
	} {
		if _, ok := srv.Object("my-bucket", object); !ok {
			t.Errorf("there is no object %s", object)
		}
	}
	if _, err := os.Stat(filepath.Join(home, "out", "disk.img")); err == nil {
		t.Error("the file is still in the outbox")
	}
}
