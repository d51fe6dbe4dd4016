package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fleet/internal/fleet"
	"gcsup/fleet/internal/natsserver"
	"gcsup/fleet/internal/smalldisk"
	"gcsup/internal/cli/exit"
	"gcsup/internal/require"
	"gcsup/internal/testprocess"
)

// TestFullDisk fills the disk of the queue while workers upload. The command ends with one message. When there is space,
// it is started again, and everything is finished.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegcs.Options{Rate: 4 << 20})
	w.dir = smalldisk.Mount(t, 32<<20)
	files := map[string][]byte{}
	for i := range 40 {
		name := fmt.Sprintf("large-%02d", i)
		files[name] = w.write(name, 1<<20+i+1)
	}
	start := func() *testprocess.Process {
		cmd := w.command("up", "--state=gs://state-bucket/uploads", "--ack-wait=4s", "--chunk-size=256KiB", "--workers=2", "--jobs=2", "--log=json")
		cmd.Stderr = nil // it is collected
		up := testprocess.Start(t, cmd)
		up.Await("workers run")
		return up
	}
	up := start()
	w.await("two workers", func(s *fleet.Status) bool { return len(s.Workers) == 2 })
	w.output("submit", "-r", w.tree+"/.", "gs://my-bucket/tree")
	w.await("some done", func(s *fleet.Status) bool { return s.Done.Files > 0 })
	at, err := readAddress(w.dir)
	require.NoError(t, err)
	free := smalldisk.Fill(t, w.dir)
	submit := w.command("submit", "-r", w.tree+"/.", "gs://my-bucket/other")
	require.NoError(t, submit.Start())
	if code := up.WaitFor(time.Minute); code != exit.IO || strings.Count(up.Output(), natsserver.ErrDiskFull.Error()) != 1 {
		t.Errorf("exit code %d: %s", code, up.Output())
	}
	if strings.Contains(up.Output(), at.Token) {
		t.Errorf("the output has the token: %s", up.Output())
	}
	_ = submit.Wait()
	free()
	up = start()
	w.output("submit", "-r", w.tree+"/.", "gs://my-bucket/other")
	w.wants(exit.OK, "", "status", "--wait")
	w.check(files)
	up.Signal(syscall.SIGTERM)
	if code := up.Wait(); code != exit.OK {
		t.Errorf("exit code %d after SIGTERM: %s", code, up.Output())
	}
}

// TestUpOnFullDisk starts the command on a full disk. It ends with a message, and with a code after which
// a supervisor starts it again.
func TestUpOnFullDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegcs.Options{})
	w.dir = smalldisk.Mount(t, 4<<20)
	defer smalldisk.Fill(t, w.dir)()
	w.wants(exit.IO, "no space left on device", "up", "--state=gs://state-bucket/uploads", "--state-unsealed")
}
