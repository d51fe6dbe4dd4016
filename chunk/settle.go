package chunk

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"time"
)

const (
	// maxTickWait bounds the time that Settle waits for the clock of a file
	// system.
	maxTickWait = 3 * time.Second

	// serverSkew is by how much the clock of a file server may be behind ours.
	serverSkew = time.Minute

	// settleTries is how often Settle looks at a file that changes all the time.
	settleTries = 3
)

// clockTick is the longest step of the clock that kernels stamp files with: on
// Linux 1 to 10 ms (CONFIG_HZ), on Windows 15.6 ms.
func clockTick() time.Duration {
	if runtime.GOOS == "windows" {
		return 16 * time.Millisecond
	}
	return 10 * time.Millisecond
}

// system is what a Source asks the operating system. Tests replace parts of it.
type system struct {
	clock      func() (unixNano int64) // that files are stamped with
	identify   func(*os.File, fs.FileInfo) (Identity, error)
	writeBack  func(*os.File) error // fsync, also if the file is open for reading
	fileSystem func(*os.File) fileSystem
}

var realSystem = system{clock: fileClock, identify: identify, writeBack: writeBack, fileSystem: fileSystemOf}

// fileSystem is what matters here of the kind of a file system.
type fileSystem struct {
	local  bool // this machine's clock stamps the files
	memory bool // pages are never written back, so stores to them never change a time
}

// Settled is what [Source.Settle] found out about a file.
type Settled struct {
	Identity Identity

	// Unsynced says that the pages of the file cannot be written back: a store
	// through a shared mapping may leave the identity as it is. Compare the
	// bytes before what was sent of them is used again.
	Unsynced bool

	// Racy says that a change may leave the identity as it is, because the
	// clock of the file system has not passed the times of the file. Compare
	// the bytes before what was sent of them is used again, and at the end.
	Racy bool
}

// Settle makes sure that every later change of the content changes the identity,
// as far as that is possible, and returns the identity. Call it before the
// first byte is read.
//
// Two kinds of changes leave the times of a file as they are. A store through a
// shared mapping changes them only if it makes a clean page dirty, so Settle has
// the dirty pages written back (fsync). A second change in the same tick of the
// file system's clock gives the same times again, so Settle waits until the
// tick is over, for 3 seconds at most.
//
// The error wraps [ErrChanged] if the file changes all the while, [ErrRead] if
// the pages cannot be written, or the cause of ctx. When ctx is done, Settle
// returns at once, even if the file system hangs; the source may be closed then.
func (s *Source) Settle(ctx context.Context) (Settled, error) {
	if s.file == nil {
		return Settled{Identity: Identity{Size: s.size}}, nil
	}
	type outcome struct {
		Settled
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		// An *os.File that is closed during a call stays open until it ends.
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

func (s *Source) settle(ctx context.Context) (Settled, error) {
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
		// After the wait: a store in the same tick may have made a page dirty.
		switch err := s.sys.writeBack(s.file); {
		case err == nil:
		case refused(err):
			was.Unsynced = true
		default:
			return Settled{}, fmt.Errorf("settle: %w: fsync: %w", ErrRead, err)
		}
		if id, err = s.Identity(); err == nil && id == was.Identity {
			return was, nil
		}
	}
	if err != nil {
		return Settled{}, err
	}
	return Settled{}, fmt.Errorf("settle: %s is being written to: %w", s.path, ErrChanged)
}

// Racy reports whether a change right now could leave the identity as it is,
// because it would fall into the same tick of the file system's clock.
func (s *Source) Racy(id Identity) bool {
	if s.file == nil {
		return false
	}
	now := s.sys.clock()
	// The kind of the file system matters for a young file only.
	return tickLeft(id, now, false) > 0 && tickLeft(id, now, s.sys.fileSystem(s.file).local) > 0
}

// tickLeft returns for how long a change at now, or later, may still get the times
// that id has. The clock of a server may differ from the local one by more than
// a tick. But it has not been before the times of the file since id was
// taken, so a whole tick from now on is enough.
func tickLeft(id Identity, now int64, local bool) time.Duration {
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

// granularity returns the longest tick with which the times of id may have been
// made. Times of whole seconds are those of ext3 with small inodes (1 s) and of
// FAT (2 s), or chance.
func granularity(id Identity) time.Duration {
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
