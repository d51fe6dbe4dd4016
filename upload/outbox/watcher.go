package outbox

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// watcher passes the notifications of the system on to the scanner. They are only hints: what matters
// is found by the scans.
type watcher struct {
	root    string
	system  *fsnotify.Watcher // nil if there are no notifications
	scanner *scanner
	warn    func(text string)

	mu     sync.Mutex
	failed bool // some directory is not watched
}

// newWatcher returns a watcher. If there can be no notifications, it does nothing.
func newWatcher(root string, s *scanner, warn func(text string)) *watcher {
	w := &watcher{root: root, scanner: s, warn: warn}
	system, err := fsnotify.NewWatcher()
	if err != nil {
		w.fail(err)
		return w
	}
	w.system = system
	return w
}

// fail records that not all changes are noticed, and warns once.
func (w *watcher) fail(err error) {
	w.mu.Lock()
	first := !w.failed
	w.failed = true
	w.mu.Unlock()
	if first {
		w.warn(fmt.Sprintf("new files are found only by scans, because the system sends no notifications: %v", err))
	}
}

// notified reports whether changes are noticed at once.
func (w *watcher) notified() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.failed
}

// add asks for the notifications of a directory. A second call for it does nothing.
func (w *watcher) add(dir string) {
	if w.system == nil {
		return
	}
	if err := w.system.Add(dir); err != nil && !gone(err) && !errors.Is(err, fsnotify.ErrClosed) {
		w.fail(err)
	}
}

// run passes notifications on until ctx is done.
func (w *watcher) run(ctx context.Context) {
	if w.system == nil {
		return
	}
	defer w.system.Close()
	for {
		select {
		case e, ok := <-w.system.Events:
			if !ok {
				return
			}
			name, err := filepath.Rel(w.root, e.Name)
			if name = filepath.ToSlash(name); err == nil && name != "." && !hidden(name) {
				w.scanner.look(name)
			}
		case err, ok := <-w.system.Errors:
			if !ok {
				return
			}
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				w.fail(err)
			}
			w.scanner.scanAll() // a notification was lost
		case <-ctx.Done():
			return
		}
	}
}
