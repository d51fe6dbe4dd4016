package sourcefile_test

import (
	"bytes"
	"gcsup/internal/require"
	"gcsup/internal/sourcefile"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// TestRemoveWhileAppending removes files that a program opens for appending meanwhile. What it has appended must be in
// a file that still exists. A signal can interrupt the program while it waits: it then opens the name again, and finds no
// file.
func TestRemoveWhileAppending(t *testing.T) {
	const added, tries = "appended", 200
	appended, lost := 0, 0
	for n := range tries {
		path := file(t, content(10))
		s := open(t, path)
		id := identity(t, s)
		wrote := make(chan bool, 1)
		s.OnIdentity(sync.OnceFunc(func() { // the lease is held
			go func() {
				f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
				if err == nil {
					_, err = f.WriteString(added)
					_ = f.Close()
				}
				wrote <- err == nil
			}()
			if n%2 == 0 { // the program waits for the lease
				for _, writers, err := sourcefile.Inspect(path); err == nil && writers == sourcefile.NoWriters; {
					_, writers, err = sourcefile.Inspect(path)
				}
			} else { // it opens the file at a random moment
				for end := time.Now().Add(rand.N(100 * time.Microsecond)); time.Now().Before(end); {
				}
			}
		}))
		err := s.Remove(id)
		if !<-wrote {
			continue
		}
		if appended++; !holds(t, filepath.Dir(path), added) {
			lost++
			t.Logf("Remove = %v", err)
		}
	}
	t.Logf("of %d appends, %d are lost", appended, lost)
	if lost > 0 || appended == 0 {
		t.Errorf("%d of %d appends are lost", lost, appended)
	}
}

// holds reports whether a file in dir ends with text.
func holds(t *testing.T, dir, text string) bool {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if data, err := os.ReadFile(filepath.Join(dir, e.Name())); err == nil && bytes.HasSuffix(data, []byte(text)) {
			return true
		}
	}
	return false
}
