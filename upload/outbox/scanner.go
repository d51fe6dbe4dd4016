package outbox

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"gcsup/chunk"
	"gcsup/internal/nolink"
	"gcsup/internal/sourcefile"
)

// sighting is what the scanner found.
type sighting struct {
	kind  sightKind
	name  string // of a file
	event event  // of a file: glanced, inspected or absent
	err   error  // scanEnded: why a part of the directory could not be read; nil if all was
}

type sightKind uint8

// The kinds of sightings.
const (
	scanBegan sightKind = iota
	walkBegan           // of a directory, and of those below it
	fileSeen
	walkEnded // as far as the directory can be read
	scanEnded
)

// hintDelay is how long the scanner collects names: a program that writes to a file causes many
// notifications.
const hintDelay = 5 * time.Millisecond

// scanner reads the directory, in a goroutine of its own: a file server may not respond.
type scanner struct {
	root  string
	watch func(dir string) // asks for notifications about a directory; called before the directory is read
	out   chan []sighting

	// restore gives a file its name back that a process did not finish to remove. It is nil after the first scan,
	// because attempts then remove files.
	restore func(aside, path string) error

	wake chan struct{} // has an element if there is something to do

	mu    sync.Mutex
	names map[string]struct{} // to inspect
	full  bool                // scan the whole directory

	found []sighting // not sent yet
}

func newScanner(root string, watch func(dir string)) *scanner {
	return &scanner{root: root, watch: watch, out: make(chan []sighting, 4), wake: make(chan struct{}, 1), names: map[string]struct{}{}, full: true}
}

// look asks for the inspection of files. A name may be that of a directory, or not exist.
func (s *scanner) look(names ...string) {
	if len(names) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		s.names[name] = struct{}{}
	}
	s.signal()
}

// pending returns the number of files that inspect will still look at.
func (s *scanner) pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.names)
}

// scanAll asks for a scan of the whole directory.
func (s *scanner) scanAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full = true
	s.signal()
}

func (s *scanner) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run works until ctx is done.
func (s *scanner) run(ctx context.Context) {
	for ctx.Err() == nil {
		s.inspectAll(ctx)
		s.mu.Lock()
		full := s.full
		s.full = false
		s.mu.Unlock()
		if full {
			s.emit(ctx, sighting{kind: scanBegan})
			err := s.walk(ctx, "")
			if ctx.Err() != nil {
				return
			}
			s.restore = nil
			s.emit(ctx, sighting{kind: scanEnded, err: err})
		}
		s.flush(ctx)
		select {
		case <-s.wake:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(hintDelay):
		case <-ctx.Done():
		}
	}
}

// emit adds a sighting, and sends some together.
func (s *scanner) emit(ctx context.Context, found sighting) {
	if s.found = append(s.found, found); len(s.found) >= 256 {
		s.flush(ctx)
	}
}

func (s *scanner) flush(ctx context.Context) {
	if len(s.found) == 0 {
		return
	}
	select {
	case s.out <- s.found:
	case <-ctx.Done():
	}
	s.found = nil
}

// inspectAll inspects the files that look named.
func (s *scanner) inspectAll(ctx context.Context) {
	s.mu.Lock()
	names := s.names
	if len(names) == 0 {
		s.mu.Unlock()
		return
	}
	s.names = map[string]struct{}{}
	s.mu.Unlock()
	var dir *os.Root
	var failed error
	at := ""
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if ctx.Err() != nil {
			break
		}
		// Names in one directory share it, except after a flush, which may have taken long: the directory may be another one.
		if parent := path.Dir(name); parent != at || len(s.found) == 0 {
			if dir != nil {
				_ = dir.Close()
			}
			at = parent
			dir, failed = nolink.Dir(s.root, filepath.FromSlash(parent))
		}
		switch {
		case dir != nil:
			s.inspect(ctx, dir, name)
		case gone(failed):
			s.emit(ctx, sighting{kind: fileSeen, name: name, event: event{kind: absent}})
		}
	}
	if dir != nil {
		_ = dir.Close()
	}
	s.flush(ctx)
}

// inspect looks at one file in dir, or scans a directory. name is that in the outbox.
func (s *scanner) inspect(ctx context.Context, dir *os.Root, name string) {
	seen := func(e event) { s.emit(ctx, sighting{kind: fileSeen, name: name, event: e}) }
	base := path.Base(name)
	info, err := dir.Lstat(base)
	switch {
	case err == nil && info.IsDir():
		_ = s.walk(ctx, name) // the next scan reports an error
		return
	case err == nil && !info.Mode().IsRegular(), gone(err):
		seen(event{kind: absent})
		return
	}
	id, writers, err := sourcefile.InspectIn(dir, base)
	switch {
	case gone(err) || errors.Is(err, chunk.ErrNotRegular):
		seen(event{kind: absent})
		return
	case err != nil:
		// The upload reports that the file cannot be opened.
		if id, err = sourcefile.StatIdentityIn(dir, base); err != nil {
			return
		}
	}
	seen(event{kind: inspected, id: id, writers: writers})
}

// gone reports whether a file does not exist, or a directory above it, or whether a link has replaced one of them.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || notDirectory(err) || nolink.Refused(err)
}

// walk scans a directory and those below it. The error is that of the first directory that could not
// be read.
func (s *scanner) walk(ctx context.Context, dir string) error {
	s.emit(ctx, sighting{kind: walkBegan})
	defer s.emit(ctx, sighting{kind: walkEnded})
	open, err := nolink.Dir(s.root, filepath.FromSlash(dir))
	if err != nil {
		if dir != "" && gone(err) {
			return nil
		}
		return err
	}
	defer open.Close()
	s.watch(open.Name())
	f, err := openEntries(open)
	if err != nil {
		if dir != "" && gone(err) {
			return nil
		}
		return err
	}
	defer f.Close()
	var first error
	var below []string
	for ctx.Err() == nil {
		entries, err := f.ReadDir(512)
		for _, entry := range entries {
			name := entry.Name()
			if dir != "" {
				name = dir + "/" + name
			}
			switch {
			case temporary(entry.Name()):
				removeStale(open, entry.Name())
			case s.recover(open, entry.Name()):
				original, _ := sourcefile.FromAside(entry.Name())
				s.glance(ctx, open, path.Join(dir, original))
			case hidden(name):
			case entry.IsDir():
				below = append(below, name)
			case entry.Type().IsRegular():
				s.glance(ctx, open, name)
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				first = err
			}
			break
		}
		s.inspectAll(ctx) // a long scan must not delay a new file
	}
	for _, name := range below {
		if ctx.Err() != nil {
			break
		}
		if err := s.walk(ctx, name); first == nil {
			first = err
		}
	}
	return first
}

// glance reports a file of dir with its identity. name is that in the outbox.
func (s *scanner) glance(ctx context.Context, dir *os.Root, name string) {
	id, err := sourcefile.StatIdentityIn(dir, path.Base(name))
	if err == nil {
		s.emit(ctx, sighting{kind: fileSeen, name: name, event: event{kind: glanced, id: id}})
	}
}

// removeStale removes the temporary file of a Put that was killed. That of a Put that works is kept, even if the
// clock has jumped.
func removeStale(dir *os.Root, name string) {
	if id, err := sourcefile.StatIdentityIn(dir, name); err != nil || !stale(id, time.Now()) {
		return
	}
	if _, writers, err := sourcefile.InspectIn(dir, name); err == nil && writers != sourcefile.HasWriters {
		_ = dir.Remove(name)
	}
}

// stale reports whether no Put works on a temporary file any more: it was not changed for a day. Its modification time
// may be that of the source.
func stale(id chunk.Identity, now time.Time) bool {
	return id.ChangeTimeNS != 0 && now.Sub(time.Unix(0, id.ChangeTimeNS)) > 24*time.Hour
}

// recover gives a file its name back if it has the name that a file has while it is removed.
func (s *scanner) recover(dir *os.Root, name string) bool {
	original, ok := sourcefile.FromAside(name)
	return ok && s.restore != nil && s.restore(filepath.Join(dir.Name(), name), filepath.Join(dir.Name(), original)) == nil
}

// openEntries opens a directory for reading. A file that os.Root opens calls lstat for each entry.
func openEntries(dir *os.Root) (*os.File, error) {
	was, err := dir.Stat(".")
	if err != nil {
		return nil, err
	}
	f, err := os.Open(dir.Name())
	if err != nil {
		return nil, err
	}
	now, err := f.Stat()
	if err == nil && !os.SameFile(was, now) { // it was replaced meanwhile
		err = &fs.PathError{Op: "open", Path: dir.Name(), Err: fs.ErrNotExist}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
