//go:build linux

package fire_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// blockReads blocks the first read of each file by a process in the kernel, as a server of NFS does that has died. Its later
// reads return, like those of what is in memory, and so do those of other processes. It needs root. The reads continue
// after release, which returns how many were blocked, or at the end of the test.
func blockReads(t *testing.T, pid *atomic.Int64, paths ...string) (release func() int, err error) {
	t.Helper()
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_CONTENT|unix.FAN_CLOEXEC|unix.FAN_NONBLOCK, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	events := os.NewFile(uintptr(fd), "fanotify")
	var count atomic.Int64
	release = func() int {
		_ = events.Close()
		return int(count.Load())
	}
	t.Cleanup(func() { release() })
	for _, path := range paths {
		if err := unix.FanotifyMark(fd, unix.FAN_MARK_ADD, unix.FAN_ACCESS_PERM, unix.AT_FDCWD, path); err != nil {
			return nil, err
		}
	}
	go func() {
		buffer := make([]byte, 4096)
		hung := map[uint64]bool{} // by inode
		var blocked []int         // their numbers identify the reads, and must not be used again
		defer func() {
			for _, file := range blocked {
				_ = unix.Close(file)
			}
		}()
		for {
			n, err := events.Read(buffer)
			if err != nil {
				return // closed
			}
			for event := buffer[:n]; len(event) > 0; event = event[binary.NativeEndian.Uint32(event):] {
				file, reader := int32(binary.NativeEndian.Uint32(event[16:])), int64(binary.NativeEndian.Uint32(event[20:]))
				var info unix.Stat_t
				if reader == pid.Load() && unix.Fstat(int(file), &info) == nil && !hung[info.Ino] {
					blocked, hung[info.Ino] = append(blocked, int(file)), true
					count.Add(1)
					continue
				}
				answer := binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(nil, uint32(file)), unix.FAN_ALLOW)
				_, _ = events.Write(answer)
				_ = unix.Close(int(file))
			}
		}
	}()
	return release, nil
}

// TestHungRead blocks a read of each of some files of a worker. The worker gives up these tasks, and not the others, and
// another worker uploads the files.
func TestHungRead(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "")
	f.cluster = startCluster(t, 1, nil)
	f.write("large", 3<<20, 1)
	f.write("small/a", 1000, 2)
	f.write("small/hung", 1000, 3)
	f.write("well", 3<<20, 4)
	f.submit()
	f.addWorkers(2, func() int { return 0 })
	first, second := f.slots[0], f.slots[1]
	var hung atomic.Int64 // its PID
	if _, err := blockReads(t, &hung, filepath.Join(f.tree(), "large"), filepath.Join(f.tree(), "small/hung")); err != nil {
		t.Skipf("reads cannot be blocked: %v", err)
	}
	f.begin(first)
	hung.Store(int64(first.worker.PID())) // long before the worker has a task
	if !poll(200*time.Millisecond, time.Minute, func() bool { return strings.Count(first.worker.Stderr(), "task begins") >= 3 }) {
		t.Fatalf("the worker has not taken the tasks: %s", first.worker.Stderr())
	}
	began := time.Now()
	f.begin(second)
	if !poll(200*time.Millisecond, time.Minute, f.uploaded) {
		f.logs()
		t.Fatal("the files are not uploaded")
	}
	t.Logf("uploaded after %v, with an ack wait of %v", time.Since(began).Round(time.Millisecond), ackWait)
	log := first.worker.Stderr()
	for _, name := range []string{"large", "small/hung"} {
		if !strings.Contains(log, "does not return, and the task goes to another worker") || !strings.Contains(log, "path="+filepath.Join(f.mount(), "tree", name)) {
			t.Errorf("the log does not name %s", name)
		}
	}
	if strings.Contains(log, "path="+filepath.Join(f.mount(), "tree", "well")) {
		t.Error("the log names a file that can be read")
	}
	f.end(second)
	f.end(first) // although it still reads
	for name, want := range f.files {
		if got, err := f.emulator.object("data", name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is wrong (%v)", name, err)
		}
	}
	if t.Failed() {
		f.logs()
	}
}
