package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/chunk"
	"gcsup/internal/checksum"
	"gcsup/internal/powerdisk"
	"gcsup/internal/require"
	"gcsup/session/state"
)

const q = int64(chunk.Granularity)

// bytesOf returns n bytes.
func bytesOf(n int64) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(b)
	return b
}

func whole(b []byte) chunk.Checkpoint {
	return chunk.Checkpoint{Offset: int64(len(b)), CRC32C: checksum.Update(0, b)}
}

// input returns the input of a test.
func input(r io.Reader) Input {
	return Input{
		Reader: r, Stop: make(chan struct{}),
		Ended: func(chunk.Checkpoint) error { return nil }, Waits: func(string, error) {}, Continues: func() {},
	}
}

// onDisk returns a spool on d with segments of 256 KiB.
func onDisk(d disk, limit int64) *Spool {
	s := newSpool(d, "spool", limit, func() {})
	s.piece = q
	return s
}

// reading is a reader that calls before in each Read, which returns at most 100,000 bytes.
type reading struct {
	rest   []byte
	before func(left int)
}

func (r *reading) Read(p []byte) (int, error) {
	if r.before != nil {
		r.before(len(r.rest))
	}
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), 100_000)], r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// TestPowerLoss simulates a power loss after each operation on the disk, with many subsets of the
// changes that are not durable. A stream is then one without an end, or all bytes that are not committed
// are there. After Fill has returned, the end is recorded.
func TestPowerLoss(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	images, ended := 0, 0
	for _, size := range []int64{0, 1, q, q + 1, 5*q - 3} {
		for _, releases := range []bool{false, true} {
			d := newPowerDisk()
			s, data := onDisk(d, 100*q), bytesOf(size)
			var committed int64
			done := false
			look := func() {
				d.images(random, func(d powerDisk) {
					images++
					if checkImage(t, d, data, committed, done) {
						ended++
					}
				})
			}
			inRelease := false
			d.After = func() {
				look()
				if releases && !inRelease && random.IntN(4) == 0 {
					inRelease = true
					committed = chunk.Floor(random.Int64N(max(chunk.LastBoundary(s.read.Offset), 1)) + 1)
					committed = max(committed, s.status().From)
					s.Release(committed)
					inRelease = false
				}
			}
			s.Fill(input(&reading{rest: bytes.Clone(data)}))
			if now := s.Status(); now.End == nil || *now.End != whole(data) {
				t.Fatalf("%d bytes: %+v, %v", size, now, s.failed)
			}
			done = true
			look()
			d.After = func() { d.images(random, func(d powerDisk) { checkBytes(t, d, data) }) }
			require.NoError(t, s.Discard())
			d.images(random, func(d powerDisk) {
				if err := onDisk(d, 0).recover(); !errors.Is(err, ErrNoEnd) {
					t.Errorf("a stream that was removed is complete again after a power loss: %v", err)
				}
			})
			if names, _ := d.Names(); len(names) > 0 {
				t.Errorf("left: %q", names)
			}
		}
	}
	t.Logf("%d states of the disk after a power loss; %d had the end", images, ended)
	if ended == 0 || ended == images {
		t.Error("the end is in none or all of them")
	}
}

// checkImage checks a disk after a power loss, and reports whether the end is recorded.
func checkImage(t *testing.T, d powerDisk, data []byte, committed int64, done bool) bool {
	t.Helper()
	s := onDisk(d, 0)
	err := s.recover()
	if errors.Is(err, ErrNoEnd) && !done {
		return false
	}
	if err != nil {
		t.Errorf("after operation %d, done %v: %v", d.Ops(), done, err)
		return false
	}
	now := s.Status()
	if *now.End != whole(data) || now.From > chunk.Floor(committed) {
		t.Errorf("%+v, end %+v, with %d bytes committed of %d", now, *now.End, committed, len(data))
		return true
	}
	got := make([]byte, int64(len(data))-now.From)
	if _, err := s.ReadAt(got, now.From); err != nil || !bytes.Equal(got, data[now.From:]) {
		t.Errorf("the bytes from %d differ: %v", now.From, err)
	}
	if base, ok := s.base(chunk.Floor(committed)); !ok || base != whole(data[:base.Offset]) {
		t.Errorf("base %+v, %v", base, ok)
	}
	return true
}

// checkBytes checks that a disk has no wrong bytes of a stream whose files are being removed.
func checkBytes(t *testing.T, d powerDisk, data []byte) {
	t.Helper()
	s := onDisk(d, 0)
	if err := s.recover(); err != nil {
		return
	}
	from := s.Status().From
	got := make([]byte, int64(len(data))-from)
	if n, err := s.ReadAt(got, from); err == nil && !bytes.Equal(got[:n], data[from:]) {
		t.Errorf("wrong bytes from %d", from)
	}
}

// TestDiskErrors makes each operation fail. Either Fill fails, or the end is durable.
func TestDiskErrors(t *testing.T) {
	data := bytesOf(3*q + 7)
	d := newPowerDisk()
	onDisk(d, 100*q).Fill(input(&reading{rest: bytes.Clone(data)}))
	for n := 1; n <= d.Ops(); n++ {
		d := newPowerDisk()
		d.FailAt = n
		s := onDisk(d, 100*q)
		s.Fill(input(&reading{rest: bytes.Clone(data)}))
		_, err := s.Await(t.Context(), func(now Status) bool { return now.End != nil })
		if !errors.Is(err, powerdisk.ErrIO) {
			t.Errorf("operation %d of %d fails: %v", n, d.Ops(), err)
		}
		if s.Status().End != nil {
			t.Errorf("operation %d fails, and the end is recorded", n)
		}
	}
}

// TestDiskFull checks that the input waits while the disk is full, with the bytes that fit, and that no
// byte is lost.
func TestDiskFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, data := newPowerDisk(), bytesOf(9*q+5)
		d.Space = 3*q + 1000
		s := onDisk(d, 100*q)
		in := input(&reading{rest: bytes.Clone(data)})
		var waits, continues int
		in.Waits = func(why string, err error) {
			waits++
			if !full(err) {
				t.Errorf("%s: %v", why, err)
			}
		}
		in.Continues = func() { continues++ }
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.Fill(in)
		}()
		for at := int64(0); at < 9*q; at += q {
			now, err := s.Await(t.Context(), func(now Status) bool { return now.Read > at+q || now.End != nil })
			require.NoError(t, err)
			time.Sleep(10 * time.Second) // the disk fills
			synctest.Wait()
			if got := make([]byte, min(q, now.Read-at)); at < now.Read {
				if _, err := s.ReadAt(got, at); err != nil || !bytes.Equal(got, data[at:at+int64(len(got))]) {
					t.Fatalf("bytes at %d: %v", at, err)
				}
			}
			s.Release(at + q)
		}
		<-done
		if end := s.Status().End; end == nil || *end != whole(data) || waits == 0 || waits != continues {
			t.Errorf("end %v, %d waits, %d continued, %v", end, waits, continues, s.failed)
		}
	})
}

// closeDisk is a disk on which the first Close of a file fails, as on a file server whose disk is full.
type closeDisk struct {
	powerDisk
	err error
}

func (d *closeDisk) Create(name string) (file, error) {
	f, err := d.powerDisk.Create(name)
	return closeFile{f, d}, err
}

type closeFile struct {
	file
	disk *closeDisk
}

func (f closeFile) Close() error {
	err := f.disk.err
	f.disk.err = nil
	return err
}

// TestCloseFails checks that the input fails if a segment cannot be closed. Its bytes were read, and must not be
// written a second time.
func TestCloseFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, failed := range []error{syscall.ENOSPC, powerdisk.ErrIO} {
			s := onDisk(&closeDisk{newPowerDisk(), failed}, 100*q)
			s.Fill(input(&reading{rest: bytesOf(3*q + 7)}))
			if now, err := s.Await(t.Context(), func(Status) bool { return true }); !errors.Is(err, failed) || now.End != nil {
				t.Errorf("%v: %v, end %v", failed, err, now.End)
			}
		}
	})
}

// syncDisk is a disk whose directory cannot be synced while err is set.
type syncDisk struct {
	powerDisk
	err error
}

func (d *syncDisk) Sync() error {
	if d.err != nil {
		return d.err
	}
	return d.powerDisk.Sync()
}

// TestRemoveAgain checks that a second call makes the removal of the end durable if the first one could not.
func TestRemoveAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &syncDisk{powerDisk: newPowerDisk()}
		s := onDisk(d, 100*q)
		s.Fill(input(&reading{rest: bytesOf(3*q + 7)}))
		d.err = powerdisk.ErrIO
		if err := s.Discard(); !errors.Is(err, powerdisk.ErrIO) {
			t.Errorf("without a sync: %v", err)
		}
		d.err = nil
		require.NoError(t, s.Discard())
		d.images(rand.New(rand.NewPCG(1, 1)), func(d powerDisk) {
			if err := onDisk(d, 0).recover(); !errors.Is(err, ErrNoEnd) {
				t.Errorf("the stream is complete again after a power loss: %v", err)
			}
		})
	})
}

// TestLimit checks that the bytes on disk stay below the limit.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, data := newPowerDisk(), bytesOf(20*q+5)
		s := onDisk(d, 4*q)
		go s.Fill(input(&reading{rest: bytes.Clone(data)}))
		for at := int64(0); ; at += q {
			synctest.Wait()
			now := s.Status()
			if now.Read-now.From > 4*q {
				t.Fatalf("%+v", now)
			}
			if now.End != nil {
				break
			}
			s.Release(at)
		}
	})
}

// TestStop checks that Fill ends while it waits for space, without an end.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, space := range []int64{-1, q} {
			d := newPowerDisk()
			d.Space = space
			s := onDisk(d, 4*q)
			in := input(&reading{rest: bytesOf(20 * q)})
			stop := make(chan struct{})
			in.Stop = stop
			go s.Fill(in)
			time.Sleep(time.Minute)
			close(stop)
			synctest.Wait()
			if _, err := s.Await(t.Context(), func(Status) bool { return false }); !errors.Is(err, fs.ErrClosed) {
				t.Errorf("error = %v", err)
			}
		}
	})
}

// TestReaders checks readers that break the contract of io.Reader, or fail.
func TestReaders(t *testing.T) {
	for name, r := range map[string]io.Reader{
		"nothing":   readerFunc(func([]byte) (int, error) { return 0, nil }),
		"too much":  readerFunc(func(p []byte) (int, error) { return len(p) + fillBuffer, nil }),
		"below 0":   readerFunc(func([]byte) (int, error) { return -1, nil }),
		"a cut end": readerFunc(func([]byte) (int, error) { return 0, fmt.Errorf("cut: %w", io.EOF) }),
		"an error":  io.MultiReader(bytes.NewReader(bytesOf(q+1)), readerFunc(func([]byte) (int, error) { return 0, powerdisk.ErrIO })),
	} {
		s := onDisk(newPowerDisk(), 4*q)
		s.Fill(input(r))
		if _, err := s.Await(t.Context(), func(Status) bool { return false }); !errors.Is(err, chunk.ErrRead) || s.Status().End != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := onDisk(newPowerDisk(), 4*q) // data with the end
	s.Fill(input(readerFunc(func(p []byte) (int, error) { return copy(p, "abc"), io.EOF })))
	if end := s.Status().End; end == nil || *end != whole([]byte("abc")) {
		t.Errorf("end = %v", end)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestNames checks the names of segments, which other files must not have.
func TestNames(t *testing.T) {
	c := chunk.Checkpoint{Offset: 8 << 20, CRC32C: 0x1a2b3c}
	if got, ok := parseSegment(segmentName(c)); !ok || got != c || segmentName(c) != "00000000000008388608-001a2b3c.bytes" {
		t.Errorf("%s: %+v, %v", segmentName(c), got, ok)
	}
	for _, name := range []string{"", ".bytes", "end.json", "1-2.bytes", "00000000000008388608-001A2B3C.bytes", "00000000000008388608-001a2b3c", "-0000000000008388608-001a2b3c.bytes", "00000000000008388608-001a2b3c.bytes.bytes"} {
		if got, ok := parseSegment(name); ok {
			t.Errorf("%q: %+v", name, got)
		}
	}
}

// TestEnd checks that only a complete record of the end is accepted.
func TestEnd(t *testing.T) {
	c := chunk.Checkpoint{Offset: 5 << 40, CRC32C: 7}
	text := encodeEnd(c)
	if got, err := decodeEnd(text); err != nil || got != c {
		t.Errorf("%s: %+v, %v", text, got, err)
	}
	const kept = `{"v":1,"size":5497558138880,"crc32c":"AAAABw=="}` + "\n" // in an earlier version: do not change it
	if got, err := decodeEnd([]byte(kept)); err != nil || got != c || string(text) != kept {
		t.Errorf("%s: %+v, %v; this version writes %s", kept, got, err, text)
	}
	for n := range len(text) - 1 {
		if _, err := decodeEnd(text[:n]); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %v", text[:n], err)
		}
	}
	for _, text := range []string{`{"v":2,"size":1,"crc32c":"AAAAAA=="}`, `{"v":2,"size":1,"crc32c":"AAAAAA==","more":1}`} {
		if _, err := decodeEnd([]byte(text)); !errors.Is(err, state.ErrVersion) || errors.Is(err, ErrDamaged) {
			t.Errorf("a newer version, %s: %v", text, err)
		}
	}
	for _, text := range []string{`{"v":1,"size":-1,"crc32c":"AAAAAA=="}`, `{"v":1,"size":1,"crc32c":"AAAA"}`, `{"v":1,"size":1,"crc32c":"AAAAAA==","more":1}`} {
		if _, err := decodeEnd([]byte(text)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestRestoredSegments checks that segments that were removed, and that a power loss restored, are not
// used across a gap.
func TestRestoredSegments(t *testing.T) {
	d, data := newPowerDisk(), bytesOf(5*q+1)
	s := onDisk(d, 100*q)
	s.Fill(input(&reading{rest: bytes.Clone(data)}))
	names, _ := d.Names()
	_ = d.Remove(names[2])
	next := onDisk(d, 0)
	if err := next.recover(); err != nil || next.Status().From != 3*q {
		t.Errorf("%+v, %v, files %q", next.Status(), err, slices.Sorted(slices.Values(names)))
	}
	if _, err := next.ReadAt(make([]byte, 2), 3*q-1); !errors.Is(err, ErrDamaged) {
		t.Errorf("read across the gap: %v", err)
	}
}

// TestWhole checks for which streams another session can send all bytes.
func TestWhole(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		name     string
		released int64
		err      error
		want     bool
	}{{"whole", 0, nil, true}, {"released", maxSegment, nil, false}, {"cut", 0, powerdisk.ErrIO, false}} {
		s, err := Create(t.Context(), dir, tt.name, 1<<30)
		require.NoError(t, err)
		r := io.Reader(bytes.NewReader(make([]byte, maxSegment+5)))
		if tt.err != nil {
			r = io.MultiReader(r, readerFunc(func([]byte) (int, error) { return 0, tt.err }))
		}
		s.Fill(input(r))
		s.Release(tt.released)
		if got, err := Whole(dir, tt.name); got != tt.want || err != nil {
			t.Errorf("%s: %v, %v", tt.name, got, err)
		}
		s.Close()
	}
	if _, err := Whole(dir, "missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing stream: %v", err)
	}
}

// TestSweep checks that a new stream removes what old streams without an end left, and nothing else.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	make := func(id string, age time.Duration, ended bool) {
		s, err := Create(t.Context(), dir, id, MinLimit)
		require.NoError(t, err)
		r := io.Reader(bytes.NewReader(bytesOf(10)))
		if !ended {
			r = io.MultiReader(r, readerFunc(func([]byte) (int, error) { return 0, powerdisk.ErrIO }))
		}
		s.Fill(input(r))
		s.Close()
		at := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(filepath.Join(dir, id), at, at))
	}
	make("old", leftAfter+time.Hour, false)
	make("new", time.Hour, false)
	make("ended", leftAfter+time.Hour, true)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "killed.lock"), nil, 0o600))
	old := time.Now().Add(-leftAfter - time.Hour)
	_ = os.Chtimes(filepath.Join(dir, "killed.lock"), old, old)
	make("last", 0, true)
	var names []string
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"ended", "last", "new"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("left: %q, %v, want %q", names, err, want)
	}
	for _, id := range names {
		if err := Remove(t.Context(), dir, id); err != nil {
			t.Error(err)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("left after Remove: %v", entries)
	}
}

// TestDiskSmallerThanASegment checks that a stream is sent through a disk that has less space than a segment. What the
// service has committed must not take that space. Each body is compared with the stream.
func TestDiskSmallerThanASegment(t *testing.T) {
	for _, space := range []int64{q + 100, q + q/2, 2 * q, 2*q + 1, 3*q + 1000, 8 * q, 9*q + 77} {
		for _, size := range []int64{q, 2*q - 30, 2 * q, 3*q + 990, 8*q - 30, 8*q - 3, 8 * q, 9*q + 70, 20 * q, 20*q + 5} {
			synctest.Test(t, func(t *testing.T) {
				d, data := newPowerDisk(), bytesOf(size)
				d.Space = space
				s := newSpool(uncountedDisk{d}, "spool", 1<<30, func() {})
				s.piece = 8 * q
				in := input(&reading{rest: bytes.Clone(data)})
				stop, filled := make(chan struct{}), make(chan struct{})
				in.Stop = stop
				go func() {
					defer close(filled)
					s.Fill(in)
				}()
				sent := drain(t, s, data)
				close(stop)
				<-filled
				if end := s.Status().End; sent != size || end == nil || *end != whole(data) {
					t.Errorf("space %d: %d of %d bytes are sent, end %v, %v", space, sent, size, end, s.failed)
				}
				if err := s.Discard(); err != nil || d.Space != space {
					t.Errorf("space %d, size %d: %d is free at the end, %v", space, size, d.Space, err)
				}
			})
		}
	}
}

// uncountedDisk is a disk whose files do not count the bytes of a failed write, like an [os.File].
type uncountedDisk struct{ powerDisk }

func (d uncountedDisk) Create(name string) (file, error) {
	f, err := d.powerDisk.Create(name)
	return uncountedFile{f}, err
}

type uncountedFile struct{ file }

func (f uncountedFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.file.WriteAt(p, off)
	if err != nil {
		n = 0
	}
	return n, err
}

// drain sends a stream to a service that commits each body, and returns how much it has committed.
func drain(t *testing.T, s *Spool, data []byte) (committed int64) {
	t.Helper()
	src := NewSource(s)
	for {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		b, err := src.Next(ctx, committed, 1<<30)
		cancel()
		if err != nil {
			t.Errorf("at byte %d: %v, %+v", committed, err, s.Status())
			return committed
		}
		got, err := io.ReadAll(b.Reader)
		if err != nil || b.From != committed || !bytes.Equal(got, data[b.From:b.To]) {
			t.Errorf("bytes %v differ: %v", b.Range, err)
		}
		if err := b.Finish(); err != nil {
			t.Error(err)
		}
		if committed = b.To; b.Last {
			return committed
		}
		src.Committed(committed)
	}
}
