package parts

import (
	"errors"
	"testing"

	"gcsup/chunk"
	"gcsup/internal/multipart"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/saved"
	"gcsup/upload/internal/spool"
)

// newSpooled returns a stream in parts of 5 MiB, in a spool of 64 MiB.
func newSpooled(t *testing.T, o Options) *dividedFile {
	t.Helper()
	sp, err := spool.Create(t.Context(), t.TempDir(), "id", 64<<20)
	require.NoError(t, err)
	t.Cleanup(sp.Close)
	f := &dividedFile{Division: Division{Journal: &saved.Journal{}, Spool: sp, Options: o}, size: -1}
	f.Journal.Begin(chunk.Identity{}, &state.Parts{Size: multipart.MinPart})
	return f
}

// sizes returns the sizes of the parts in the saved upload.
func (f *dividedFile) sizes() (list []int64) {
	for _, p := range f.common().List {
		list = append(list, p.Size)
	}
	return list
}

// TestSpooledDivision checks which parts a stream has while it is read: a part has all its bytes, unless the disk is
// full and no part is being sent.
func TestSpooledDivision(t *testing.T) {
	t.Parallel()
	const part = multipart.MinPart
	f := newSpooled(t, Options{})
	read := func(i int, now spool.Status, want bool) {
		t.Helper()
		if ready, err := f.read(i, now); err != nil || ready != want {
			t.Fatalf("part %d: %v, %v, want %v; parts %v", i, ready, err, want, f.sizes())
		}
	}
	read(0, spool.Status{Sendable: part - q}, false)
	read(0, spool.Status{Sendable: part + 3*q}, true)
	read(1, spool.Status{Sendable: 2*part - q, Full: true, Waits: "full"}, false) // the first part will give space
	f.Journal.Change(func(p *state.Parts) { p.List[0].ETag = "etag" })
	read(1, spool.Status{Sendable: 2*part - q, Full: true, Waits: "full"}, false) // the service accepts no smaller part
	read(1, spool.Status{Sendable: 2 * part, Waits: "the limit"}, true)
	f.Journal.Change(func(p *state.Parts) { p.List[1].ETag = "etag" })
	// Beyond, parts are larger.
	require.NoError(t, f.add(100*part*500))
	f.Journal.Change(func(p *state.Parts) { p.List[2].ETag = "etag" })
	there := f.growth.end() + 2*part
	read(3, spool.Status{Sendable: there}, false)
	read(3, spool.Status{Sendable: there, Waits: "the limit"}, false)
	read(3, spool.Status{Sendable: there, Full: true, Waits: "full"}, true)
	// The end divides the rest.
	require.NoError(t, f.divide(there+48<<20+1))
	got := f.sizes()
	if n := len(got); n != 6 || got[3] != 2*part || got[4] != 48<<20 || got[5] != 1 {
		t.Errorf("parts %v", got)
	}
	read(5, spool.Status{Read: there + 48<<20 + 1, Sendable: there + 48<<20}, false) // the byte may leave the disk again
	read(6, spool.Status{End: &chunk.Checkpoint{Offset: there + 48<<20 + 1}}, true)
}

// TestSpooledTooLong checks that a stream fails that has more bytes than its parts hold, while it is read and at its
// end.
func TestSpooledTooLong(t *testing.T) {
	t.Parallel()
	f := newSpooled(t, Options{MaxParts: 2})
	for i := range 2 {
		if ready, err := f.read(i, spool.Status{Sendable: 50 << 20}); !ready || err != nil {
			t.Fatal(ready, err)
		}
	}
	if err := f.divide(2 * multipart.MinPart); err != nil {
		t.Error(err)
	}
	if _, err := f.read(2, spool.Status{Sendable: 50 << 20}); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("%v, want ErrInvalid", err)
	}
	if err := f.divide(2*multipart.MinPart + 1); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("%v, want ErrInvalid", err)
	}
}
