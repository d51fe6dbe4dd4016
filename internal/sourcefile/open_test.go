package sourcefile_test

import (
	"gcsup/chunk"
	"gcsup/internal/require"
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
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

func open(t testing.TB, path string) *sourcefile.File {
	t.Helper()
	s, err := sourcefile.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func identity(t *testing.T, s *sourcefile.File) chunk.Identity {
	t.Helper()
	id, err := s.Identity()
	require.NoError(t, err)
	return id
}

// content returns n bytes, the same in every run.
func content(n int64) []byte {
	b := make([]byte, n)
	src := rand.NewChaCha8([32]byte{1})
	src.Read(b)
	return b
}

// TestOpenWhileAFileGrows checks that Open accepts a file that is empty or ends
// at its size, even while it grows, and that Opened reports the growth.
func TestOpenWhileAFileGrows(t *testing.T) {
	path := file(t, nil)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
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
