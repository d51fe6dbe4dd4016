package savedrate

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"gcsup/internal/require"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestValid(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*BucketRate)
		want   bool
	}{
		{"new", func(*BucketRate) {}, true},
		{"59 minutes old", func(r *BucketRate) { r.Refused = epoch.Add(-59 * time.Minute) }, true},
		{"an hour old", func(r *BucketRate) { r.Refused = epoch.Add(-time.Hour) }, false},
		{"saved now, but refused long ago", func(r *BucketRate) { r.Refused, r.Saved = epoch.Add(-time.Hour), epoch }, false},
		{"a clock that is a little ahead", func(r *BucketRate) { r.Refused = epoch.Add(30 * time.Second) }, true},
		{"from the future", func(r *BucketRate) { r.Refused = epoch.Add(time.Hour) }, false},
		{"no time", func(r *BucketRate) { r.Refused = time.Time{} }, false},
		{"no rate", func(r *BucketRate) { r.PerSecond = 0 }, false},
		{"negative", func(r *BucketRate) { r.PerSecond = -1 }, false},
		{"infinite", func(r *BucketRate) { r.PerSecond = math.Inf(1) }, false},
		{"no bucket", func(r *BucketRate) { r.Bucket = "" }, false},
		{"later version", func(r *BucketRate) { r.V = 2 }, false},
	} {
		r := BucketRate{1, "http://e", "b", 100, epoch, epoch, "p"}
		test.change(&r)
		if got := r.valid(epoch); got != test.want {
			t.Errorf("%s: valid %v, want %v", test.name, got, test.want)
		}
	}
}

func TestMerge(t *testing.T) {
	at := func(d time.Duration) time.Time { return epoch.Add(d) }
	record := func(process string, perSecond float64, refused, saved time.Duration) BucketRate {
		return BucketRate{1, "http://e", "b", perSecond, at(refused), at(saved), process}
	}
	const minute = time.Minute
	for _, test := range []struct {
		name                  string
		earlier, latest, want BucketRate
	}{
		{"the same process grows", record("p", 100, 0, 0), record("p", 200, 0, minute), record("p", 200, 0, minute)},
		{"the same process shrinks", record("p", 300, 0, 0), record("p", 200, minute, minute), record("p", 200, minute, minute)},
		{"two at a time, lower first", record("p", 100, 0, 0), record("q", 200, 0, minute/2), record("q", 100, 0, minute/2)},
		{"two at a time, higher first", record("p", 300, 0, 0), record("q", 200, 0, minute/2), record("q", 200, 0, minute/2)},
		{"one after the other", record("p", 100, 0, 0), record("q", 200, 0, 5*minute), record("q", 200, 0, 5*minute)},
		{"the other had the last 429", record("p", 300, 3*minute, 3*minute), record("q", 200, minute, 9*minute), record("q", 200, 3*minute, 9*minute)},
		{"the earlier one is too old", record("p", 10, 0, 0), record("q", 200, 60*minute, 60*minute), record("q", 200, 60*minute, 60*minute)},
		{"damaged", BucketRate{}, record("q", 200, 0, 0), record("q", 200, 0, 0)},
		{"another bucket with the same hash", BucketRate{1, "http://e", "c", 1, epoch, epoch, "p"}, record("q", 200, 0, 0), record("q", 200, 0, 0)},
	} {
		if got := merge(test.earlier, test.latest); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

// rates returns the rates of d by bucket.
func rates(d *Dir, now time.Time) map[string]float64 {
	all := map[string]float64{}
	for r := range d.Rates(now) {
		all[r.Bucket] = r.PerSecond
	}
	return all
}

func TestDir(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "requestrate")
	now := time.Now()
	d := New(path, "http://e")
	if got := rates(d, now); len(got) > 0 {
		t.Errorf("rates %v in a directory that does not exist", got)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a read creates the directory")
	}
	for _, save := range []struct {
		endpoint, bucket string
		rate             float64
	}{{"http://e", "a", 100}, {"http://e", "b", 250.5}, {"http://other", "a", 7}} {
		require.NoError(t, New(path, save.endpoint).Save(save.bucket, save.rate, now, now))
	}
	entries, _ := os.ReadDir(path)
	for _, e := range entries {
		if info, _ := e.Info(); info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
			t.Errorf("%s has mode %v, want 0600", e.Name(), info.Mode())
		}
	}
	if got := fmt.Sprint(rates(New(path, "http://e"), now.Add(time.Minute))); len(entries) != 3 || got != "map[a:100 b:250.5]" {
		t.Errorf("%d files, rates %v", len(entries), got)
	}
	if got := fmt.Sprint(rates(New(path, "http://other"), now)); got != "map[a:7]" {
		t.Errorf("rates of the other endpoint: %v", got)
	}

	// Damaged files, and those of others, have no effect.
	for name, content := range map[string]string{New(path, "http://e").file("a"): `{"v":1,"bucket":`, "readme.txt": "x", "x.tmp": "left by a process that was killed"} {
		require.NoError(t, os.WriteFile(filepath.Join(path, name), []byte(content), 0o600))
	}
	if got := fmt.Sprint(rates(d, now)); got != "map[b:250.5]" {
		t.Errorf("rates beside damaged files: %v", got)
	}
	if err := d.Save("a", 50, now, now); err != nil || fmt.Sprint(rates(d, now)) != "map[a:50 b:250.5]" {
		t.Errorf("a damaged file is not replaced: %v, %v", err, rates(d, now))
	}

	// After an hour nothing is valid, and the files are removed.
	if got := rates(d, now.Add(2*time.Hour)); len(got) > 0 {
		t.Errorf("rates %v after two hours", got)
	}
	if entries, _ = os.ReadDir(path); len(entries) != 1 || entries[0].Name() != "readme.txt" {
		t.Errorf("files left: %v, want that of another program", entries)
	}
}

// TestDirTogether checks that processes that write at the same time leave a whole file.
func TestDirTogether(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file that is open cannot be replaced")
	}
	path, now := t.TempDir(), time.Now()
	var processes sync.WaitGroup
	for i := range 8 {
		processes.Go(func() {
			d := New(path, "http://e")
			for range 20 {
				if err := d.Save("b", float64(100+i), now, now); err != nil {
					t.Error(err)
				}
				if got := rates(d, now)["b"]; got < 100 || got > 107 {
					t.Errorf("rate %v, want that of a process", got)
				}
			}
		})
	}
	processes.Wait()
	if entries, _ := os.ReadDir(path); len(entries) != 1 || !strings.HasSuffix(entries[0].Name(), ".json") {
		t.Errorf("files left: %v, want one", entries)
	}
}

func TestSaveFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	if New(filepath.Join(file, "requestrate"), "http://e").Save("b", 1, time.Now(), time.Now()) == nil {
		t.Error("no error although the directory cannot be created")
	}
}
