package sourcefile

import (
	"context"
	"fmt"
	"gcsup/chunk"
	"io/fs"
	"os"
	"runtime"
	"time"
)

const (
	// maxTickWait is the longest time that Settle waits for the clock of a file
	// system.
	maxTickWait = 3 * time.Second

	// serverSkew is how far the clock of a file server may be behind the local
	// clock.
	serverSkew = time.Minute

	// settleTries is how many times Settle checks a file that keeps changing.
	settleTries = 3
)

// clockTick returns the longest step of the kernel's clock for file times: on
// Linux 1 to 10 ms (CONFIG_HZ), on Windows 15.6 ms.
func clockTick() time.Duration {
	if runtime.GOOS == "windows" {
		return 16 * time.Millisecond
	}
	return 10 * time.Millisecond
}

// system has the operating system calls of a Source. Tests replace them.
type system struct {
	clock      func() (unixNano int64) // the clock for file times
	identify   func(*os.File, fs.FileInfo) (chunk.Identity, error)
	writeBack  func(*os.File) error // fsync, even if the file is open for reading only
	fileSystem func(*os.File) fileSystem
}

var realSystem = system{clock: fileClock, identify: identify, writeBack: writeBack, fileSystem: fileSystemOf}

// fileSystem describes the type of a file system.
type fileSystem struct {
	local  bool // file times come from this machine's clock
	memory bool // pages are never written back, so that stores to them never change a time
}

// Settled is the result of [File.Settle].
type Settled struct {
	Identity chunk.Identity

	// Unsynced reports that the pages of the file cannot be written back. A
	// store through a shared mapping may not change the identity. To resume an
	// upload, compare the bytes first.
	Unsynced bool

	// Racy reports that a change may leave the identity as it is, because the clock of
	// the file system has not passed the times of the file. To resume an upload, compare
	// the bytes first. Compare them at the end too.
	Racy bool
}

// Settle returns the identity of the source, and ensures as far as possible
// that every later change of the content changes the identity. Call it before
// the first byte is read.
//
// Two kinds of changes do not change the times of a file. A store through a
// shared mapping changes them only if it makes a clean page dirty. Settle
// therefore writes the dirty pages back (fsync). A second change in the same
// tick of the file system's clock sets the same times again. Settle therefore
// waits until the tick ends, for at most 3 seconds.
//
// The error wraps [chunk.ErrChanged] if the file keeps changing, [chunk.ErrRead] if the pages
// cannot be written, or the cause of ctx. When ctx is done, Settle returns at once,
// even if the file system hangs. The source may then be closed.
func (s *File) Settle(ctx context.Context) (Settled, error) {
	if s.file == nil {
		id, err := s.Identity()
		return Settled{Identity: id}, err
	}
	type outcome struct {
		Settled
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		// An *os.File that is closed during a call stays open until the call
		// ends.
		settled, err := s.settle(ctx)
		done <- outcome{settled, err}
	}()
	select {
	case o := <-done:
		return o.Settled, o.err
	case <-ctx.Done():
		return Settled{}, fmt.Errorf("settle: %w", context.Cause(ctx))
	}
}

func (s *File) settle(ctx context.Context) (Settled, error) {
	kind := s.sys.fileSystem(s.file)
	id, err := s.Identity()
	left := maxTickWait
	for range settleTries {
		if err != nil {
			return Settled{}, err
		}
		was := Settled{Identity: id, Unsynced: kind.memory}
		if wait := tickLeft(id, s.sys.clock(), kind.local); wait > left {
			was.Racy = true
		} else if wait > 0 {
			left -= wait
			if err := sleep(ctx, wait); err != nil {
				return Settled{}, fmt.Errorf("settle: %w", err)
			}
		}
		// Write back after the wait: a store in the same tick may have made a
		// page dirty.
		switch err := s.sys.writeBack(s.file); {
		case err == nil:
		case refused(err):
			was.Unsynced = true
		default:
			return Settled{}, fmt.Errorf("settle: %w: fsync: %w", chunk.ErrRead, err)
		}
		if id, err = s.Identity(); err == nil && id == was.Identity {
			return was, nil
		}
	}
	if err != nil {
		return Settled{}, err
	}
	return Settled{}, fmt.Errorf("settle: %s keeps changing: %w", s.path, chunk.ErrChanged)
}

// Racy reports whether a change at this moment could leave the identity as it is,
// because it is in the same tick of the file system's clock.
func (s *File) Racy(id chunk.Identity) bool {
	if s.file == nil {
		return false
	}
	now := s.sys.clock()
	// The type of the file system matters only if the file changed recently.
	return tickLeft(id, now, false) > 0 && tickLeft(id, now, s.sys.fileSystem(s.file).local) > 0
}

// tickLeft returns how long after now a change may still get the times of id. The
// clock of a server may differ from the local clock by more than a tick. When id was
// taken, that clock had reached the times of the file. A whole tick from now is
// therefore enough.
func tickLeft(id chunk.Identity, now int64, local bool) time.Duration {
	tick := granularity(id)
	age := time.Duration(now - max(id.ModTimeNS, id.ChangeTimeNS))
	switch {
	case local:
		return max(tick-age, 0)
	case age >= tick+serverSkew:
		return 0
	}
	return max(tick-age, tick)
}

// granularity returns the longest tick that is consistent with the times of id.
// ext3 with small inodes has a tick of 1 s, FAT of 2 s. Other file systems have
// times of whole seconds only by chance.
func granularity(id chunk.Identity) time.Duration {
	const second = int64(time.Second)
	divides := func(step int64) bool { return id.ModTimeNS%step == 0 && id.ChangeTimeNS%step == 0 }
	for _, step := range []int64{2 * second, second, second / 10} {
		if divides(step) {
			return max(time.Duration(step), clockTick())
		}
	}
	return clockTick()
}

// sleep waits for d, or returns the cause of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
