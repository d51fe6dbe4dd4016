package sourcefile_test

import (
	"gcsup/chunk"
	"gcsup/internal/sourcefile"
	"gcsup/internal/testsize"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// file returns the path of a new file with the given content.
func file(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(testsize.DiskDir(t), "source")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t testing.TB, path string) *sourcefile.File {
	t.Helper()
	s, err := sourcefile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func identity(t *testing.T, s *sourcefile.File) chunk.Identity {
	t.Helper()
	id, err := s.Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// content returns n bytes, the same in every run.
func content(n int64) []byte {
	b := make([]byte, n)
	src := rand.NewChaCha8([32]byte{1})
	src.Read(b)
	return b
}

func TestSourceIdentityChanges(t *testing.T) {
	path := file(t, content(10))
	s := open(t, path)
	was := identity(t, s)
	if got := sourcefile.Compare(was, identity(t, s)); got != sourcefile.Same {
		t.Errorf("Compare of the same file = %v, want %v", got, sourcefile.Same)
	}
	// The change is larger than the tick of any file system.
	if err := os.Chtimes(path, time.Time{}, time.Unix(0, was.ModTimeNS+int64(time.Minute))); err != nil {
		t.Fatal(err)
	}
	if got := sourcefile.Compare(was, identity(t, s)); got != sourcefile.Different {
		t.Errorf("Compare after a touch = %v, want %v", got, sourcefile.Different)
	}
	again := identity(t, open(t, path))
	if got := sourcefile.Compare(identity(t, s), again); got != sourcefile.Same {
		t.Errorf("Compare of the file opened twice = %v, want %v", got, sourcefile.Same)
	}
	other := identity(t, open(t, file(t, content(10))))
	other.ModTimeNS = again.ModTimeNS
	if got := sourcefile.Compare(again, other); got != sourcefile.Different {
		t.Errorf("Compare of two files with the same size and time = %v, want %v", got, sourcefile.Different)
	}
}

// TestOpenWhileAFileGrows checks that Open accepts a file that is empty or ends
// at its size, even while it grows, and that Opened reports the growth.
func TestOpenWhileAFileGrows(t *testing.T) {
	path := file(t, nil)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = f.Write([]byte("x"))
			}
		}
	}()
	grown := false
	for deadline := time.Now().Add(10 * time.Second); !grown && time.Now().Before(deadline); {
		s, err := sourcefile.Open(path)
		if err != nil {
			t.Errorf("Open = %v", err)
			break
		}
		id, err := s.Opened()
		if err != nil || id.Size < s.Size() {
			t.Errorf("Opened = %+v, %v, but the size is %d", id, err, s.Size())
		}
		grown = grown || id.Size > s.Size()
		s.Close()
	}
	if !grown {
		t.Error("Opened never reports that the file has grown")
	}
	close(stop)
	<-done
	f.Close()
}
