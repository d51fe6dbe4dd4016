package sourcefile

import (
	"gcsup/chunk"
	"io/fs"
	"os"
	"time"
)

// Unexported names for the tests of package sourcefile_test.

var ClockTick = clockTick()

// SetWriteBack replaces fsync.
func (s *File) SetWriteBack(f func(*os.File) error) { s.sys.writeBack = f }

// SetClock replaces the clock of the source's file system and the times of its
// file.
func (s *File) SetClock(local bool, clock, mtime, ctime func() time.Time) {
	s.sys.clock = func() int64 { return clock().UnixNano() }
	s.sys.fileSystem = func(*os.File) fileSystem { return fileSystem{local: local} }
	s.sys.identify = func(f *os.File, info fs.FileInfo) (chunk.Identity, error) {
		id, err := identify(f, info)
		id.ModTimeNS, id.ChangeTimeNS = mtime().UnixNano(), ctime().UnixNano()
		return id, err
	}
}

// OnIdentity calls f before each identity of the source is taken.
func (s *File) OnIdentity(f func()) {
	s.sys.identify = func(file *os.File, info fs.FileInfo) (chunk.Identity, error) {
		f()
		return identify(file, info)
	}
}

// WithoutLeases makes the source behave as on a file system that has no leases.
func (s *File) WithoutLeases() {
	s.sys.fileSystem = func(*os.File) fileSystem { return fileSystem{} }
}
