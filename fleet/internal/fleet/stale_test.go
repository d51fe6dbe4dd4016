package fleet

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gcsup/internal/require"
)

// TestStale checks which files are as they were submitted.
func TestStale(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a")
	require.NoError(t, os.WriteFile(path, make([]byte, 10), 0o600))
	at := time.Unix(1e9, 123456789)
	for name, c := range map[string]struct {
		is    time.Time
		size  int64
		stale bool
	}{
		"the same":              {at, 10, false},
		"another size":          {at, 11, true},
		"newer":                 {at.Add(time.Millisecond), 10, true},
		"older":                 {at.Add(-time.Hour), 10, true},
		"a second later":        {at.Add(time.Second), 10, true},
		"in microseconds":       {at.Truncate(time.Microsecond), 10, false},
		"in seconds":            {at.Truncate(time.Second), 10, false},
		"in seconds, but later": {at.Truncate(time.Second).Add(5 * time.Second), 10, true},
	} {
		require.NoError(t, os.Chtimes(path, c.is, c.is))
		info, err := os.Stat(path)
		require.NoError(t, err)
		err = stale(File{Path: path, Size: c.size, ModTimeNS: at.UnixNano()}, info)
		if errors.Is(err, errStale) != c.stale {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (kindOf(err) != kindStale || !strings.Contains(err.Error(), path) || !ofWorker(outcome{err: err})) {
			t.Errorf("%s: kind %s, %v", name, kindOf(err), err)
		}
		// The submitter may have the file system with the larger units.
		if back := sameTime(c.is.UnixNano(), at.UnixNano()); back != sameTime(at.UnixNano(), c.is.UnixNano()) {
			t.Errorf("%s: not symmetric", name)
		}
	}
}
