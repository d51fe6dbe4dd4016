package source

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"gcsup/chunk"
	"gcsup/internal/checksum"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload/internal/content"
	"gcsup/upload/internal/stream"
)

// zeros is a reader of zero bytes.
type zeros struct{}

func (zeros) ReadAt(p []byte, _ int64) (int, error) {
	clear(p)
	return len(p), nil
}

// broken is a file that cannot be read.
type broken struct{}

func (broken) ReadAt([]byte, int64) (int, error) { return 0, io.ErrClosedPipe }

func prefix(data []byte, sum string) content.Prefix {
	p, crc, md := content.Prefix{Offset: int64(len(data))}, checksum.Update(0, data), md5.Sum(data)
	switch sum {
	case "crc32c":
		p.CRC32C = &crc
	case "other crc32c":
		p.CRC32C = new(crc + 1)
	case "md5":
		p.MD5 = &md
	case "other md5":
		md[0]++
		p.MD5 = &md
	}
	return p
}

// TestCompareFile checks what a checksum of the service shows about a file, of which the first two units were sent.
// Only a comparison that is worth it reads more than 256 KiB.
func TestCompareFile(t *testing.T) {
	const large = 32<<20 + 1
	for _, tt := range []struct {
		sum    string
		offset int
		forget bool // the first two units are committed
		reread bool
		copied bool
		want   content.Verdict
	}{
		{"", 8, false, true, true, content.Unknown},
		{"crc32c", 2 * q, false, false, false, content.Same},
		{"crc32c", 8, false, false, true, content.Same},
		{"crc32c", 3*q - 1, false, false, false, content.Same},
		{"crc32c", 3 * q, false, false, false, content.Unknown},
		{"crc32c", 3 * q, false, true, true, content.Same},
		{"crc32c", q, true, false, false, content.Unknown}, // no longer known
		{"crc32c", q, true, true, false, content.Same},
		{"other crc32c", 2 * q, false, false, true, content.Different},
		{"other crc32c", 3 * q, false, true, false, content.Different},
		{"md5", 4 * q, false, false, true, content.Same},
		{"other md5", 4*q - 1, false, false, true, content.Different},
		{"md5", large - 1, false, false, false, content.Same},
		{"md5", large, false, false, false, content.Unknown},
		{"other md5", large, false, false, true, content.Different}, // the bytes of a copy must be compared
	} {
		file := FromReaderAt(zeros{}, large, silent)
		if b, err := file.Next(t.Context(), 0, 2*q); err != nil {
			t.Fatal(err)
		} else if _, err := io.Copy(io.Discard, b); errors.Join(err, b.Finish()) != nil {
			t.Fatal(err)
		}
		if tt.forget {
			file.Committed(2 * q)
		}
		file.copied = tt.copied
		got, err := file.Compare(t.Context(), prefix(make([]byte, tt.offset), tt.sum), tt.reread)
		if got != tt.want || err != nil || file.Copied() != (tt.copied && got != content.Same) {
			t.Errorf("%+v: %v, %v, copied %v", tt, got, err, file.Copied())
		}
	}
	for _, sum := range []string{"crc32c", "md5"} {
		unreadable := FromReaderAt(broken{}, q, silent)
		if got, err := unreadable.Compare(t.Context(), prefix(make([]byte, 8), sum), false); got != content.Unknown || !errors.Is(err, chunk.ErrRead) {
			t.Errorf("%s of a file that cannot be read: %v, %v", sum, got, err)
		}
	}
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(errors.ErrUnsupported)
	if _, err := FromReaderAt(zeros{}, large, silent).Compare(canceled, prefix(make([]byte, large), "md5"), true); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("canceled: %v", err)
	}
}

// TestCompareSaved checks which checkpoints of an earlier process are compared, and what is read for that.
func TestCompareSaved(t *testing.T) {
	const mib = 1 << 20
	at := func(offset int, changed bool) chunk.Checkpoint {
		c := chunk.Checkpoint{Offset: int64(offset), CRC32C: checksum.Update(0, make([]byte, offset))}
		if changed {
			c.CRC32C++
		}
		return c
	}
	for _, tt := range []struct {
		checkpoints []chunk.Checkpoint
		last        bool   // CompareLast
		changed     int    // the first bytes that have changed; 0 if none have
		reread      string // bytes, up to an offset, of the end
	}{
		{nil, false, 0, ""},
		{nil, true, 0, ""},
		{[]chunk.Checkpoint{at(q, false)}, true, 0, "[0-262144 of 262144]"},
		{[]chunk.Checkpoint{at(mib, false), at(10*mib, false)}, false, 0, "[0-1048576 of 10485760 1048576-9437184 of 10485760 9437184-10485760 of 10485760]"},
		{[]chunk.Checkpoint{at(mib, false), at(10*mib, false)}, true, 0, "[1048576-9437184 of 10485760 9437184-10485760 of 10485760]"},
		{[]chunk.Checkpoint{at(q, true), at(2*q, false), at(3*q, false)}, false, q, "[0-262144 of 786432]"},
		{[]chunk.Checkpoint{at(q, true), at(2*q, false), at(3*q, false)}, true, 0, "[524288-786432 of 786432]"},
		{[]chunk.Checkpoint{at(q, false), at(2*q, true)}, true, 2 * q, "[262144-524288 of 524288]"},
	} {
		var reread []string
		file := FromReaderAt(zeros{}, 16*mib, func(n, offset, end int64) { reread = append(reread, fmt.Sprintf("%d-%d of %d", offset-n, offset, end)) })
		compare := file.CompareAll
		if tt.last {
			compare = file.CompareLast
		}
		err := compare(t.Context(), Saved{Checkpoints: tt.checkpoints})
		if errors.Is(err, session.ErrSourceChanged) != (tt.changed > 0) || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("first %d bytes", tt.changed)) {
			t.Errorf("%v: %v, want a change in %d", tt.checkpoints, err, tt.changed)
		}
		if got := fmt.Sprint(reread); got != tt.reread && !(got == "[]" && tt.reread == "") {
			t.Errorf("%v, only the last: %v: read %s, want %s", tt.checkpoints, tt.last, got, tt.reread)
		}
	}
}

// TestSection checks that a range of a file is a file of its own.
func TestSection(t *testing.T) {
	all := random(3*q + 1000)
	file := FromBytes(all, silent)
	for _, rng := range []chunk.Range{{From: 0, To: q}, {From: 5, To: 2 * q}, {From: q, To: q}, {From: q, To: 3*q + 1000}} {
		section := file.Section(rng)
		whole, err := section.Whole(t.Context())
		if want := (chunk.Checkpoint{Offset: rng.Len(), CRC32C: checksum.Update(0, all[rng.From:rng.To])}); err != nil || whole != want || section.Identity() != (chunk.Identity{Size: rng.Len()}) {
			t.Errorf("%v: %+v, %v, want %+v", rng, whole, err, want)
		}
	}
	if got, err := MD5(bytes.NewReader(all), q); err != nil || got != md5.Sum(all[:q]) {
		t.Errorf("MD5: %x, %v", got, err)
	}
	if _, err := MD5(bytes.NewReader(all), 4*q); !errors.Is(err, io.EOF) {
		t.Errorf("MD5 of a short reader: %v", err)
	}
}

// TestPart checks that a part that does not fit in memory is read from the file for each request, and compared with
// what was sent before.
func TestPart(t *testing.T) {
	data := random(q + 1000)
	for _, budget := range []int64{0, 1} { // unlimited, and too little
		source := slices.Clone(data)
		rereads := 0
		file := FromReaderAt(bytes.NewReader(source), int64(len(source)), func(n, offset, end int64) {
			if rereads++; n != q+1000 || offset != n || end != n {
				t.Errorf("read again: %d, %d, %d", n, offset, end)
			}
		})
		p, err := file.Part(t.Context(), stream.NewMemory(budget))
		require.NoError(t, err)
		inMemory := budget == 0
		if _, known := p.CRC32C(); known != inMemory {
			t.Errorf("in memory %v: the checksum is known: %v", inMemory, known)
		}
		if err := p.Hash(t.Context()); err != nil || (rereads == 1) == inMemory {
			t.Errorf("in memory %v: %d rereads, %v", inMemory, rereads, err)
		}
		if crc, known := p.CRC32C(); !known || crc != checksum.Update(0, data) {
			t.Errorf("in memory %v: %08x, known %v", inMemory, crc, known)
		}
		for etag, want := range map[string]bool{fmt.Sprintf("%q", fmt.Sprintf("%x", md5.Sum(data))): true, fmt.Sprintf("%x", md5.Sum(data)): true, fmt.Sprintf("%x", md5.Sum(nil)): false, "\"x\"": false, "abcd": false} {
			if got, err := p.HasETag(t.Context(), etag); got != want || err != nil {
				t.Errorf("in memory %v: has the ETag %s: %v, %v", inMemory, etag, got, err)
			}
		}
		source[q]++
		for range 2 {
			body, finish := p.Open()
			got, err := io.ReadAll(body)
			err = errors.Join(err, finish())
			if inMemory && (err != nil || !bytes.Equal(got, data)) || !inMemory && !errors.Is(err, chunk.ErrChanged) {
				t.Errorf("in memory %v: a file that has changed: %d bytes, %v", inMemory, len(got), err)
			}
		}
		p.Free()
	}
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(errors.ErrUnsupported)
	memory := stream.NewMemory(2 * q)
	for _, tt := range []struct {
		ctx  context.Context
		file *File
		want error
	}{{canceled, FromBytes(data[:q], silent), errors.ErrUnsupported}, {t.Context(), FromReaderAt(broken{}, q, silent), chunk.ErrRead}, {t.Context(), FromBytes(data[:q], silent), nil}} {
		if _, err := tt.file.Part(tt.ctx, memory); !errors.Is(err, tt.want) { // the first two return their memory
			t.Errorf("%v, want %v", err, tt.want)
		}
	}
	if last, err := FromReaderAt(broken{}, q, silent).Part(t.Context(), memory); err != nil || last.data != nil {
		t.Errorf("the memory is not used up: %v", err)
	} else if err := last.Hash(t.Context()); err == nil {
		t.Error("a file that cannot be read has a checksum")
	}
}
