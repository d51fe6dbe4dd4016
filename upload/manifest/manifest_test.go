package manifest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/chunk"
	"gcsup/internal/checksum"
	"gcsup/internal/require"
	"gcsup/internal/sourcefile"
	"gcsup/internal/testsize"
	"gcsup/upload"
)

func open(t testing.TB, path string) *Manifest {
	t.Helper()
	m, err := Open(path, "")
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func record(t testing.TB, m *Manifest, records ...Record) {
	t.Helper()
	for _, r := range records {
		require.NoError(t, m.Record(r))
	}
}

// reopen closes and opens a manifest.
func reopen(t testing.TB, m *Manifest) *Manifest {
	t.Helper()
	require.NoError(t, m.Close())
	return open(t, m.path)
}

// remaining returns the objects of the jobs that Skip yields.
func remaining(t testing.TB, m *Manifest, jobs iter.Seq[upload.Job]) []string {
	t.Helper()
	names := []string{}
	for job, err := range m.Skip(t.Context(), jobs) {
		require.NoError(t, err)
		names = append(names, job.Spec.Object)
	}
	return names
}

func TestRecordRoundTrip(t *testing.T) {
	now := time.Date(2026, 11, 22, 10, 0, 0, 123e6, time.UTC)
	for _, want := range []Record{
		{Status: Done, Path: "a.txt", Bucket: "bkt", Object: "a.txt", Generation: 1763769254000001, CRC32C: 0xc99465aa, HasCRC32C: true, Time: now,
			Source: chunk.Identity{Size: 5 << 40, ModTimeNS: -1, ChangeTimeNS: 1763769254123456789, Device: 1<<64 - 1, Inode: 1<<64 - 1}},
		{Status: Skipped, Path: `C:\a "b".txt`, Bucket: "my_bucket", Object: "dir/ <&>\u2028\x00é//", Time: now},
		{Status: Failed, Path: "b", Bucket: "bkt", Object: "b", Reason: "no\nsuch file", Time: now},
	} {
		text, err := want.encode()
		require.NoError(t, err)
		if bytes.IndexByte(text, '\n') != len(text)-1 || !bytes.HasPrefix(text, []byte(`{"v":1,"time":"2026-11-22T10:00:00.123Z","status":"`)) {
			t.Errorf("line %q", text)
		}
		got, err := decode(text[:len(text)-1])
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
		want.Reason, want.Time = "", time.Time{}
		if got := unpack(got.pack(nil)); !reflect.DeepEqual(got, want) {
			t.Errorf("unpack %+v, want %+v", got, want)
		}
	}
	for _, bad := range []Record{
		{Path: "a", Bucket: "bkt", Object: "a"},
		{Status: Done, Path: "a", Object: "a"},
		{Status: Done, Path: "a", Bucket: "bkt"},
		{Status: Done, Path: "a", Bucket: "bkt", Object: "\xff"},
		{Status: Done, Path: strings.Repeat("a", lineLimit), Bucket: "bkt", Object: "a"},
	} {
		if text, err := bad.encode(); err == nil {
			t.Errorf("%.100s: want an error", text)
		}
	}
	long := Record{Status: Failed, Path: "a", Bucket: "bkt", Object: "a", Reason: strings.Repeat("é", reasonLimit)}
	text, err := long.encode()
	if err != nil || len(text) > reasonLimit+200 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// TestSkip runs a batch again with real files.
func TestSkip(t *testing.T) {
	dir := t.TempDir()
	names := []string{"changed", "chmod", "done", "edited", "failed", "failed-later", "gone", "new", "retried", "skipped"}
	path := func(name string) string { return filepath.Join(dir, name) }
	m := open(t, path("manifest"))
	for _, name := range names {
		require.NoError(t, os.WriteFile(path(name), []byte(name), 0o600))
		id, err := sourcefile.StatIdentity(path(name))
		require.NoError(t, err)
		r := Record{Status: Done, Path: path(name), Source: id, Bucket: "bkt", Object: name, CRC32C: checksum.Update(0, []byte(name)), HasCRC32C: true}
		first := r
		switch name {
		case "new":
			continue
		case "failed":
			r.Status = Failed
		case "retried":
			first.Status = Failed
			record(t, m, first)
		case "failed-later":
			record(t, m, first)
			r.Status = Failed
		case "skipped":
			r.Status = Skipped
		case "done":
			r.Source.Device++ // another mount
		}
		record(t, m, r)
	}
	old, err := os.Stat(path("edited"))
	require.NoError(t, err)
	time.Sleep(20 * time.Millisecond) // so that the change time differs
	for _, err := range []error{
		os.WriteFile(path("changed"), []byte("another size"), 0o600),
		os.Chmod(path("chmod"), 0o400),
		os.WriteFile(path("edited"), []byte("EDITED"), 0o600),
		os.Chtimes(path("edited"), old.ModTime(), old.ModTime()),
		os.Remove(path("gone")),
	} {
		require.NoError(t, err)
	}
	var all []upload.Job
	for _, name := range names {
		all = append(all, upload.Job{Path: path(name), Spec: upload.Spec{Bucket: "bkt", Object: name}})
	}
	jobs := slices.Values(slices.Insert(all, 4, upload.Job{Spec: upload.Spec{Bucket: "bkt", Object: "\xff"}, Err: errors.New("bad name")}))
	if got := remaining(t, m, jobs); len(got) != len(names)+1 {
		t.Errorf("a new manifest skips jobs: %q remain", got)
	}
	m = reopen(t, m)
	want := []string{"changed", "edited", "\xff", "failed", "failed-later", "gone", "new"}
	if runtime.GOOS == "windows" { // it reports no change time
		want = slices.Delete(want, 1, 2)
	}
	if got := remaining(t, m, jobs); !slices.Equal(got, want) {
		t.Errorf("remain %q, want %q", got, want)
	}
	if s := m.Stats(); s.Finished != int64(len(names)+1-len(want)) || s.Damaged != 0 {
		t.Errorf("stats %+v", s)
	}
}

// TestSkipOfAnotherEndpoint checks that a record describes an object of one endpoint: that of
// an emulator, for example, is none of the service.
func TestSkipOfAnotherEndpoint(t *testing.T) {
	const service, emulator = "https://storage.googleapis.com", "http://127.0.0.1:4443"
	dir := t.TempDir()
	source := filepath.Join(dir, "a")
	require.NoError(t, os.WriteFile(source, []byte("a"), 0o600))
	id, err := sourcefile.StatIdentity(source)
	require.NoError(t, err)
	job := upload.Job{Path: source, Spec: upload.Spec{Bucket: "bkt", Object: "a"}}
	for i, run := range []struct {
		endpoint string
		left     int
	}{
		{emulator, 1}, {service, 1}, {emulator, 0}, {service, 0}, {"", 0}, // the last record is that of the service
	} {
		m, err := Open(filepath.Join(dir, "m"), run.endpoint)
		require.NoError(t, err)
		left := remaining(t, m, slices.Values([]upload.Job{job}))
		if len(left) != run.left {
			t.Errorf("run %d at %q: %d jobs are left, want %d", i, run.endpoint, len(left), run.left)
		}
		if len(left) > 0 {
			record(t, m, Record{Status: Done, Path: source, Source: id, Bucket: "bkt", Object: "a"})
		}
		require.NoError(t, m.Close())
	}
}

// TestSkipOfReplacedLink checks that a file is not finished if a link in its place was
// skipped, whatever the size and the times of the file are.
func TestSkipOfReplacedLink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	m := open(t, path+".manifest")
	record(t, m, Record{Status: Skipped, Path: path, Bucket: "bkt", Object: "a", Reason: "symbolic link not followed"})
	m = reopen(t, m)
	m.identity = func(string) (chunk.Identity, error) { return chunk.Identity{}, nil }
	job := upload.Job{Path: path, Spec: upload.Spec{Bucket: "bkt", Object: "a"}}
	if got := remaining(t, m, slices.Values([]upload.Job{job})); len(got) != 1 {
		t.Errorf("remain %q, want a", got)
	}
}

// TestSkipProperty compares Skip with a map.
func TestSkipProperty(t *testing.T) {
	for seed := range testsize.Full(200, 40) {
		rng := rand.New(rand.NewPCG(2, uint64(seed)))
		dir := t.TempDir()
		m := open(t, filepath.Join(dir, "m"))
		name := func() (bucket, object string) {
			return []string{"abc", "abcd", "abd"}[rng.IntN(3)], strings.Repeat("a/-\xc3\xa9"[rng.IntN(3):], 1+rng.IntN(3)) + fmt.Sprint(rng.IntN(30))
		}
		finished := map[string]bool{}
		for range rng.IntN(200) {
			bucket, object := name()
			if strings.ToValidUTF8(object, "") != object {
				continue
			}
			status := []Status{Done, Skipped, Failed}[rng.IntN(3)]
			record(t, m, Record{Status: status, Path: "p", Bucket: bucket, Object: object, Source: chunk.Identity{Inode: 1}})
			finished[bucket+"\x00"+object] = status != Failed
		}
		m = reopen(t, m)
		m.identity = func(string) (chunk.Identity, error) { return chunk.Identity{Inode: 1}, nil }
		var keys []string
		for range rng.IntN(200) {
			bucket, object := name()
			keys = append(keys, bucket+"\x00"+object)
		}
		slices.Sort(keys)
		var got, want []string
		var all []upload.Job
		for _, key := range keys {
			bucket, object, _ := strings.Cut(key, "\x00")
			if all = append(all, upload.Job{Spec: upload.Spec{Bucket: bucket, Object: object}}); !finished[key] {
				want = append(want, key)
			}
		}
		for job, err := range m.Skip(t.Context(), slices.Values(all)) {
			require.NoError(t, err)
			got = append(got, job.Spec.Bucket+"\x00"+job.Spec.Object)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: remain %q, want %q", seed, got, want)
		}
		require.NoError(t, m.Close())
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Fatalf("files %v, want the manifest only", entries)
		}
	}
}

const (
	lineA = `{"v":1,"status":"done","source":"a","destination":"gs://bkt/a","identity":{"size":0,"mod_time_ns":0,"change_time_ns":0,"device":0,"inode":1}}` + "\n"
	lineB = `{"v":1,"status":"done","source":"b","destination":"gs://bkt/b","identity":{"size":0,"mod_time_ns":0,"change_time_ns":0,"device":0,"inode":1}}` + "\n"
)

// TestOpenAfterCrash checks which lines Open keeps and Skip reads.
func TestOpenAfterCrash(t *testing.T) {
	for _, test := range []struct {
		name, content, kept string
		remain              string
		damaged             int64
	}{
		{"empty", "", "", "ab", 0},
		{"complete", lineA + lineB, lineA + lineB, "", 0},
		{"incomplete last line", lineA + lineB[:50], lineA, "b", 0},
		{"no last line break", lineA + lineB[:len(lineB)-1], lineA, "b", 0},
		{"incomplete first line", lineA[:30], "", "ab", 0},
		{"three bytes", `{"v`, "", "ab", 0},
		{"NULs at the end", lineA + strings.Repeat("\x00", 100_000), lineA, "b", 0},
		{"only NULs", strings.Repeat("\x00", 4096), "", "ab", 0},
		{"damaged line", lineA + "x\x00x\n" + lineB, lineA + "x\x00x\n" + lineB, "", 1},
		{"two records in a line", lineA[:40] + lineA + lineB, lineA[:40] + lineA + lineB, "a", 1},
		{"long line", lineA + strings.Repeat("x", 3*lineLimit) + "\n" + lineB, lineA + strings.Repeat("x", 3*lineLimit) + "\n" + lineB, "", 1},
		{"unknown status", lineA + strings.Replace(lineB, "done", "lost", 1), lineA + strings.Replace(lineB, "done", "lost", 1), "b", 1},
		{"unknown field", lineA + strings.Replace(lineB, `"status"`, `"x":[1],"status"`, 1), lineA + strings.Replace(lineB, `"status"`, `"x":[1],"status"`, 1), "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "m")
			require.NoError(t, os.WriteFile(path, []byte(test.content), 0o600))
			m := open(t, path)
			m.identity = func(string) (chunk.Identity, error) { return chunk.Identity{Inode: 1}, nil }
			if got, _ := os.ReadFile(path); string(got) != test.kept {
				t.Errorf("the manifest is %.200q, want %.200q", got, test.kept)
			}
			got := strings.Join(remaining(t, m, jobs("a", "b")), "")
			if got != test.remain || m.Stats().Damaged != test.damaged {
				t.Errorf("remain %q, %d damaged, want %q, %d", got, m.Stats().Damaged, test.remain, test.damaged)
			}
			record(t, m, Record{Status: Done, Path: "c", Bucket: "bkt", Object: "c"})
			require.NoError(t, m.Close())
			after, _ := os.ReadFile(path)
			if rest, ok := strings.CutPrefix(string(after), test.kept); !ok || strings.Count(rest, "\n") != 1 || !strings.Contains(rest, "gs://bkt/c") {
				t.Errorf("after a record: %.200q", after)
			}
		})
	}
}

func jobs(names ...string) iter.Seq[upload.Job] {
	var all []upload.Job
	for _, name := range names {
		all = append(all, upload.Job{Path: name, Spec: upload.Spec{Bucket: "bkt", Object: name}})
	}
	return slices.Values(all)
}

// TestOpenRefuses checks that Open does not change a file that it refuses.
func TestOpenRefuses(t *testing.T) {
	newer := `{"v":2,"what":1}` + "\n"
	for _, test := range []struct {
		name, content string
		want          error
	}{
		{"text", "hello\n", ErrFormat},
		{"text without a line break", "hello", ErrFormat},
		{"other JSON", `{"version":1}` + "\n" + lineA, ErrFormat},
		{"bytes", "\x89PNG\r\n", ErrFormat},
		{"a long line", head + strings.Repeat("1", 2*lineLimit), ErrFormat},
		{"newer", newer, ErrVersion},
		{"newer, incomplete", newer[:9], ErrVersion},
		{"newer at the end", lineA + newer, ErrVersion},
		{"newer before an incomplete line", lineA + newer + lineB[:20], ErrVersion},
	} {
		path := filepath.Join(t.TempDir(), "m")
		require.NoError(t, os.WriteFile(path, []byte(test.content), 0o600))
		_, err := Open(path, "")
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
		if got, _ := os.ReadFile(path); string(got) != test.content {
			t.Errorf("%s: Open changed the file", test.name)
		}
		if _, err := os.Stat(path + ".lock"); err == nil {
			t.Errorf("%s: the lock remains", test.name)
		}
	}
	if _, err := Open(t.TempDir(), ""); !errors.Is(err, ErrFormat) {
		t.Errorf("a directory: %v", err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "missing", "m"), ""); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
	path := filepath.Join(t.TempDir(), "m")
	require.NoError(t, os.WriteFile(path, []byte(lineA+newer+lineB), 0o600))
	for _, err := range open(t, path).Skip(t.Context(), jobs("a")) {
		if !errors.Is(err, ErrVersion) {
			t.Errorf("newer in the middle: %v", err)
		}
	}
}

func TestOneProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m")
	m := open(t, path)
	if _, err := Open(path, ""); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) && runtime.GOOS != "windows" {
		t.Errorf("second Open: %v", err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err == nil {
		if _, err := Open(link, ""); !errors.Is(err, ErrLocked) {
			t.Errorf("Open by another name: %v", err)
		}
	}
	for range 2 {
		require.NoError(t, m.Close())
	}
	if err := m.Record(Record{Status: Done, Path: "a", Bucket: "bkt", Object: "a"}); !errors.Is(err, ErrClosed) {
		t.Errorf("Record after Close: %v", err)
	}
	open(t, path)
}

func TestUnsortedJobs(t *testing.T) {
	m := open(t, filepath.Join(t.TempDir(), "m"))
	record(t, m, Record{Status: Failed, Path: "a", Bucket: "bkt", Object: "a"})
	m = reopen(t, m)
	var got []string
	var last error
	for job, err := range m.Skip(t.Context(), jobs("b", "c", "a", "d")) {
		if last = err; err == nil {
			got = append(got, job.Spec.Object)
		}
	}
	if !slices.Equal(got, []string{"b", "c"}) || !errors.Is(last, ErrUnsorted) || !strings.Contains(last.Error(), "gs://bkt/a is after gs://bkt/c") {
		t.Errorf("%q, %v", got, last)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range m.Skip(ctx, jobs("a")) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
	}
}

// fullDisk writes a part of a record, then fails, while it is full.
type fullDisk struct {
	output
	full     bool
	syncs    int
	syncFail error
}

var errFull = errors.New("no space left on device")

func (d *fullDisk) Write(p []byte) (int, error) {
	if d.full {
		n, _ := d.output.Write(p[:len(p)/2])
		return n, errFull
	}
	return d.output.Write(p)
}

func (d *fullDisk) Sync() error {
	d.syncs++
	return d.syncFail
}

func TestFullDisk(t *testing.T) {
	m := open(t, filepath.Join(t.TempDir(), "m"))
	disk := &fullDisk{output: m.appender.out}
	m.appender.out = disk
	r := Record{Status: Done, Path: "a", Bucket: "bkt", Object: "a"}
	record(t, m, r)
	before, _ := os.ReadFile(m.path)
	disk.full = true
	if err := m.Record(r); !errors.Is(err, errFull) {
		t.Errorf("Record: %v", err)
	}
	if after, _ := os.ReadFile(m.path); !bytes.Equal(before, after) {
		t.Errorf("a part of a record remains: %q", after)
	}
	disk.full = false
	record(t, m, r)
	if after, _ := os.ReadFile(m.path); bytes.Count(after, []byte("\n")) != 2 {
		t.Errorf("manifest %q", after)
	}
}

// TestRecordOfRefusedNames checks that a batch continues after a file that failed
// because of its name, which no record can contain.
func TestRecordOfRefusedNames(t *testing.T) {
	m := open(t, filepath.Join(t.TempDir(), "m"))
	for _, object := range []string{"", "caf\xe9"} {
		r := Record{Status: Failed, Path: "caf\xe9", Bucket: "bkt", Object: object, Reason: "object name not allowed"}
		if err := m.Record(r); err != nil {
			t.Errorf("%q failed: %v", object, err)
		}
		r.Status = Skipped
		if err := m.Record(r); err != nil {
			t.Errorf("%q skipped because it is not a file: %v", object, err)
		}
		r.Source.Size = 1
		if err := m.Record(r); err == nil {
			t.Errorf("%q skipped: recorded", object)
		}
		r.Status = Done
		if err := m.Record(r); err == nil {
			t.Errorf("%q done: recorded", object)
		}
	}
	record(t, m, Record{Status: Done, Path: "a", Bucket: "bkt", Object: "a"})
	if text, _ := os.ReadFile(m.path); bytes.Count(text, []byte("\n")) != 1 {
		t.Errorf("manifest %q", text)
	}
}

// TestSync checks that fsync is called at most once a second, soon after the last
// record, and by Close.
func TestSync(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m")
	synctest.Test(t, func(t *testing.T) {
		m, err := Open(path, "")
		require.NoError(t, err)
		disk := &fullDisk{output: m.appender.out}
		m.appender.out = disk
		r := Record{Status: Done, Path: "a", Bucket: "bkt", Object: "a"}
		for range 1000 {
			record(t, m, r)
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		if disk.syncs < 9 || disk.syncs > 12 {
			t.Errorf("%d syncs in 11 s, want one per second", disk.syncs)
		}
		m.appender.mu.Lock()
		if m.appender.dirty {
			t.Error("the last record is not synced")
		}
		m.appender.mu.Unlock()
		n := disk.syncs
		record(t, m, r)
		if err := m.Close(); err != nil || disk.syncs != n+1 {
			t.Errorf("Close: %v, %d syncs", err, disk.syncs-n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		m, err := Open(path, "")
		require.NoError(t, err)
		m.appender.out = &fullDisk{output: m.appender.out, syncFail: io.ErrShortWrite}
		r := Record{Status: Done, Path: "a", Bucket: "bkt", Object: "a"}
		record(t, m, r)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if err := m.Record(r); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("Record after a failed sync: %v", err)
		}
		if err := m.Close(); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("Close after a failed sync: %v", err)
		}
	})
}

func TestConcurrentRecords(t *testing.T) {
	m := open(t, filepath.Join(t.TempDir(), "m"))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 200 {
				if err := m.Record(Record{Status: Done, Path: "p", Bucket: "bkt", Object: fmt.Sprintf("%d/%d", i, n)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	m = reopen(t, m)
	if got := remaining(t, m, jobs("x")); len(got) != 1 || m.Stats().Damaged != 0 {
		t.Errorf("%q, %+v", got, m.Stats())
	}
	if data, _ := os.ReadFile(m.path); bytes.Count(data, []byte("\n")) != 1600 {
		t.Errorf("%d lines", bytes.Count(data, []byte("\n")))
	}
}

// TestMillionRecords writes a million records and skips the finished jobs, in
// constant memory.
func TestMillionRecords(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	count := 50_000
	if testsize.Full(1, 0) == 1 {
		count = 1_000_000
	}
	m := open(t, filepath.Join(t.TempDir(), "m"))
	m.appender.out = &fullDisk{output: m.appender.out} // no fsync
	id := chunk.Identity{Size: 16 << 10, ModTimeNS: 1763769254123456789, ChangeTimeNS: 1763769254123456789, Device: 64768, Inode: 123456789}
	name := func(i int) string { return fmt.Sprintf("backup/2026/%07d/file.dat", i) }
	start := time.Now()
	for i := range count {
		n := i * 7919 % count // in another order
		status := Done
		if n%10 == 0 {
			status = Failed
		}
		record(t, m, Record{Status: status, Path: "/srv/" + name(n), Source: id, Bucket: "bkt", Object: name(n), Generation: 1763769254000001, CRC32C: uint32(n), HasCRC32C: true})
	}
	wrote := time.Since(start)
	m = reopen(t, m)
	m.identity = func(string) (chunk.Identity, error) { return id, nil }

	var before, mem runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	done := make(chan struct{})
	peak := make(chan uint64)
	go func() { // the sort is one call
		var most uint64
		for {
			select {
			case <-done:
				peak <- most
				return
			case <-time.After(20 * time.Millisecond):
				runtime.ReadMemStats(&mem)
				most = max(most, mem.HeapAlloc)
			}
		}
	}()
	start = time.Now()
	remain := 0
	for job, err := range m.Skip(t.Context(), func(yield func(upload.Job) bool) {
		for i := range count {
			if !yield(upload.Job{Path: "p", Spec: upload.Spec{Bucket: "bkt", Object: name(i)}}) {
				return
			}
		}
	}) {
		require.NoError(t, err)
		if !strings.Contains(job.Spec.Object, "0/file.dat") {
			t.Fatalf("%s remains", job.Spec.Object)
		}
		remain++
	}
	took := time.Since(start)
	close(done)
	most := <-peak
	if remain != count/10 || m.Stats().Finished != int64(count)*9/10 || most > 32<<20 {
		t.Errorf("%d remain, %+v, heap %d bytes", remain, m.Stats(), most)
	}
	t.Logf("write %v, skip %v, heap at most %.1f MiB (%.1f before)", wrote, took, float64(most)/(1<<20), float64(before.HeapAlloc)/(1<<20))
}

func BenchmarkRecord(b *testing.B) {
	m := open(b, filepath.Join(b.TempDir(), "m"))
	r := Record{Status: Done, Path: "/srv/backup/file.dat", Bucket: "bkt", Object: "backup/file.dat", Generation: 1, CRC32C: 1, HasCRC32C: true,
		Source: chunk.Identity{Size: 16 << 10, ModTimeNS: 1763769254123456789, ChangeTimeNS: 1763769254123456789, Device: 64768, Inode: 123456789}}
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, m.Record(r))
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(lineA[:len(lineA)-1])
	f.Add(`{"v":1,"status":"failed","destination":"gs://b/o","generation":"1","crc32c":"AAAAAA==","error":"x"}`)
	f.Add(`{"v":2}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := decode([]byte(text))
		if err != nil {
			return
		}
		packed := r.pack(nil)
		if got := unpack(packed); got.Status != r.Status || got.Source != r.Source || got.Path != r.Path || got.CRC32C != r.CRC32C {
			t.Errorf("unpack %+v, want %+v", got, r)
		}
	})
}
