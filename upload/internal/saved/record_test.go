package saved

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/chunk"
	"gcsup/internal/checksum"
	"gcsup/internal/require"
	"gcsup/internal/sourcefile"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/content"
	"gcsup/upload/internal/source"
	"gcsup/upload/internal/stream"
)

// random returns n bytes that cannot be compressed.
func random(n int64) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

func fileOf(n int64) *source.File { return source.FromBytes(random(n), func(int64, int64, int64) {}) }

// send reads the bytes before to as a request does.
func send(t *testing.T, c content.Source, from, to int64) {
	t.Helper()
	body, err := c.Next(t.Context(), from, to-from)
	if err == nil {
		_, err = io.Copy(io.Discard, body)
	}
	if finished := body.Finish(); err == nil {
		err = finished
	}
	if err != nil || body.To != to {
		t.Fatalf("sent up to %d, want %d: %v", body.To, to, err)
	}
}

// summary describes what a store has of a session.
func summary(s *state.Session) string {
	out := fmt.Sprintf("%d/%d", s.Committed/q, s.HighWater/q)
	for _, c := range s.Checkpoints {
		out += fmt.Sprintf(" %d", c.Offset/q)
	}
	return out
}

// TestRecord follows the session of a file: what the store has after each report, in quarters of a MiB:
// committed/sent, and the checkpoints.
func TestRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t)
		dir, _ := openDir(t)
		j, _ := open(t, dir)
		file := fileOf(16*q + 1)
		r := j.RecordFile(file)
		uri, began := s.start(), time.Now()
		r.Started(uri, 2)
		if j.File() != r || j.Saved() || j.Old() {
			t.Error("saved before the first request")
		}
		sending := func(committed, sent, to int64) func() {
			return func() {
				require.NoError(t, r.Sending(t.Context(), committed*q, sent*q, to*q))
				if sent < to {
					send(t, file, sent*q, to*q)
				}
			}
		}
		handed := func(sent int64) func() { return func() { r.Handed(sent * q) } }
		for i, step := range []struct {
			after  time.Duration
			report func()
			want   string
		}{
			{0, sending(0, 0, 8), "0/8"},
			{0, handed(4), "0/8"},
			{100 * time.Millisecond, handed(3), "0/8"},
			{0, handed(4), "0/8 4"},
			{0, handed(8), "0/8 4"}, // too early
			{100 * time.Millisecond, handed(8), "0/8 4 8"},
			{time.Hour, handed(8), "0/8 4 8"}, // nothing was sent
			{0, sending(7, 8, 12), "7/12 4 8"},
			{0, sending(8, 12, 12), "8/12 8 12"},
			{0, func() { r.Rejected(12 * q) }, "8/12 8 12"},
			{0, func() { r.Ended(9*q, 12*q) }, "8/12 8 12"},
			{0, j.Close, "9/12 8 12"},
		} {
			time.Sleep(step.after)
			step.report()
			j.AwaitSaves()
			if got := summary(&load(t, dir, id).Session); got != step.want {
				t.Errorf("step %d: the store has %s, want %s", i, got, step.want)
			}
		}
		doc := load(t, dir, id)
		whole, err := file.Whole(t.Context())
		require.NoError(t, err)
		for _, c := range doc.Checkpoints {
			if c.CRC32C != checksum.Update(0, random(16*q + 1)[:c.Offset]) {
				t.Errorf("the checkpoint %+v is not that of the bytes", c)
			}
		}
		if !sameURI(doc.URI, uri) || doc.Restarts != 2 || !doc.Created.Equal(began) || doc.RejectedAt != 12*q+1 || doc.Source.Size != whole.Offset || doc.SourcePath != "/source" {
			t.Errorf("the saved upload is %+v", doc)
		}
	})
}

// TestRecordInABucket checks that a store whose saves cost money gets one saved upload for all bytes, and later a
// checkpoint when the last save is old.
func TestRecordInABucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t)
		store, _ := s.share("first")
		j, _ := open(t, store)
		defer j.Close()
		file := fileOf(16 * q)
		r := j.RecordFile(file)
		r.Started(s.start(), 0)
		for i, step := range []struct {
			after time.Duration
			from  int64
			want  string
		}{
			{0, 0, "0/16"},
			{time.Second, 4, "0/16"},  // a checkpoint is due, but the save is not old
			{ttl / 2, 8, "8/16 8 12"}, // the next save is due; soon the lease would be renewed without one
		} {
			time.Sleep(step.after)
			require.NoError(t, r.Sending(t.Context(), step.from*q, step.from*q, (step.from+4)*q))
			send(t, file, step.from*q, (step.from+4)*q)
			time.Sleep(time.Second)
			r.Handed((step.from + 4) * q)
			j.AwaitSaves()
			if got := summary(&load(t, store, id).Session); got != step.want {
				t.Errorf("step %d: the store has %s, want %s", i, got, step.want)
			}
		}
		// A new session must be saved before its first byte, whatever the store has.
		uri := s.start()
		r.Started(uri, 1)
		if err := r.Sending(t.Context(), 0, 0, q); err != nil || !sameURI(load(t, store, id).URI, uri) {
			t.Errorf("the new session is not saved: %v", err)
		}
	})
}

// TestRecordOfAPart checks that the session of a part changes nothing but that part.
func TestRecordOfAPart(t *testing.T) {
	s := newService(t)
	dir, _ := openDir(t)
	j, _ := open(t, dir)
	defer j.Close()
	identity := chunk.Identity{Size: 3 * q, ModTimeNS: 7}
	j.Begin(identity, &state.Parts{Size: q, Prefix: "gcsup-parts/x/"})
	r, uri := j.RecordPart(2, fileOf(q)), s.start()
	r.Started(uri, 1)
	require.NoError(t, r.Sending(t.Context(), 0, 0, q))
	doc := load(t, dir, id)
	for i, part := range doc.Parts.List {
		if want := i == 1; (sameURI(part.URI, uri)) != want || (part.HighWater == q) != want || (part.Restarts == 1) != want {
			t.Errorf("part %d is %+v", i+1, part)
		}
	}
	if doc.Source != identity || !doc.URI.IsZero() || doc.HighWater != 0 {
		t.Errorf("the saved upload is %+v", doc)
	}
	if got := r.Part(); !sameURI(got.URI, uri) || j.File() != nil {
		t.Errorf("the part is %+v", got)
	}
}

// TestRecordOfACopy checks that the saved upload keeps the identity of the file with which the session began until the
// bytes of the copy are compared.
func TestRecordOfACopy(t *testing.T) {
	s := newService(t)
	dir, _ := openDir(t)
	began := newDoc(id, s.start())
	began.Source = chunk.Identity{Size: 4 * q, ModTimeNS: 7}
	save(t, dir, began)
	j, doc := open(t, dir)
	defer j.Close()
	file := fileOf(4 * q)
	if change := file.Since(doc.Source, false, true); change != sourcefile.ChangeTimeOnly {
		t.Fatal(change)
	}
	r := j.RecordFile(file)
	for _, want := range []chunk.Identity{began.Source, file.Identity()} {
		if err := r.Sending(t.Context(), q, q, 2*q); err != nil || load(t, dir, id).Source != want {
			t.Errorf("saved %+v, %v, want %+v", load(t, dir, id).Source, err, want)
		}
		file.Proven()
	}
}

// TestRecordOfACompressedFile checks what a resume needs to compress the file again: the size of the compressed
// bytes, and how much of the file is in those that were sent.
func TestRecordOfACompressedFile(t *testing.T) {
	s := newService(t)
	dir, _ := openDir(t)
	j, _ := open(t, dir, func(_ *Call, draft *state.Upload) { draft.Spec.Gzip = true })
	defer j.Close()
	zipped := source.NewGzip(fileOf(2*q), source.Compressor{}, &stream.Memory{}, 4<<20)
	defer zipped.Close()
	r := j.RecordFile(zipped)
	r.Started(s.start(), 0)
	if _, err := zipped.Next(t.Context(), 0, q); err != nil {
		t.Fatal(err)
	}
	size := zipped.Total()
	for _, step := range []struct{ from, to, sent int64 }{{0, q, q}, {q, size, size}, {q, size, size}, {q, 2 * q, size}} {
		require.NoError(t, r.Sending(t.Context(), step.from, step.from, step.to))
		r.Handed(step.to) // saves nothing
		doc := load(t, dir, id)
		_, file := zipped.Compression(step.sent)
		if doc.HighWater != step.sent || doc.Gzip.Size != size || doc.Gzip.Source != file || file.Offset < q || LastCheckpoint(doc.Checkpoints) != step.sent {
			t.Errorf("before %+v: saved %+v, %+v, want %+v of the file", step, doc.Session, doc.Gzip, file)
		}
	}
}

// emptyURILease counts the saves of a saved upload without a session.
type emptyURILease struct {
	state.Lease
	saves, empty atomic.Int64
}

func (l *emptyURILease) Save(_ context.Context, t *state.Upload) error {
	l.saves.Add(1)
	if t.URI.IsZero() {
		l.empty.Add(1) // state.Encode refuses it as incomplete
	}
	return nil
}

// TestSaveWhileASessionStarts saves in the background, as SaveSoon does, while a lost session is
// replaced by another one.
func TestSaveWhileASessionStarts(t *testing.T) {
	uri := newService(t).start()
	lease := &emptyURILease{}
	j := &Journal{lease: lease, saving: make(chan struct{}, 1)}
	r := j.RecordFile(fileOf(4 * q))
	r.Started(uri, 0)
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_ = j.Save(context.Background())
			}
		}
	}()
	for i := range 200_000 {
		r.Started(uri, i)
	}
	close(stop)
	<-done
	if n := lease.empty.Load(); n > 0 {
		t.Errorf("%d of %d saves were of a saved upload without the URI of its session", n, lease.saves.Load())
	}
}

// TestAdopted checks the state in which the session of a saved upload continues.
func TestAdopted(t *testing.T) {
	for _, tt := range []struct {
		saved state.Session
		want  session.State
	}{
		{state.Session{}, session.State{Size: 8, Adopted: true, RejectedAt: -1}},
		{state.Session{Committed: 3, HighWater: 7, Restarts: 2}, session.State{Size: 8, Committed: 3, Sent: 7, Restarts: 2, Adopted: true, RejectedAt: -1}},
		{state.Session{HighWater: 8, RejectedAt: 1}, session.State{Size: 8, Sent: 8, MayExist: true, Adopted: true, Rejected: true}},
		{state.Session{RejectedAt: 5}, session.State{Size: 8, Adopted: true, Rejected: true, RejectedAt: 4}},
	} {
		if got := Adopted(tt.saved, 8); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%+v continues as %+v, want %+v", tt.saved, got, tt.want)
		}
	}
}

// TestDead checks which errors end a session.
func TestDead(t *testing.T) {
	for err, want := range map[error]bool{
		session.ErrSessionLost: true, session.ErrCanceled: true, session.ErrChecksum: true,
		session.ErrUnexpectedData: true, session.ErrProtocol: true, session.ErrURIMismatch: true,
		session.ErrRetriesExhausted: false, session.ErrPermission: false, session.ErrSourceChanged: false,
		session.ErrPrecondition: false, context.Canceled: false, // errors without a reply
	} {
		if got := Dead(fmt.Errorf("upload: %w", err)); got != want {
			t.Errorf("%v: dead %v, want %v", err, got, want)
		}
		replied := want || errors.Is(err, session.ErrPrecondition)
		for _, e := range []session.Error{{}, {Open: true}, {Early: true}} {
			e.Kind = err
			if got := Dead(&e); got != (replied && !e.Open && !e.Early) {
				t.Errorf("%+v: dead %v", e, got)
			}
		}
	}
}
