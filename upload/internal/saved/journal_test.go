package saved

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/chunk"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/session/state"
)

// TestOpen checks what Open returns for each state of the store, and that no lease remains after an error.
func TestOpen(t *testing.T) {
	uri := newService(t).start()
	identified := newDoc(id, uri)
	identified.SourcePath, identified.SourceIdentity = "", "bucket/o"
	moving := newDoc(id, uri)
	moving.MovedTo = newID
	var broken atomic.Bool
	broken.Store(true)
	for name, tt := range map[string]struct {
		saved        *state.Upload
		raw          string // what the store has instead
		unreadable   bool
		err, damaged error
	}{
		"nothing":    {},
		"saved":      {saved: newDoc(id, uri)},
		"identified": {saved: identified},
		"moved":      {saved: moving},
		"damaged":    {raw: "x", damaged: state.ErrCorrupt},
		"newer":      {raw: newer, err: state.ErrVersion},
		"unreadable": {saved: newDoc(id, uri), unreadable: true, err: errFault},
	} {
		dir, path := openDir(t)
		if tt.raw != "" {
			damage(t, path, id, tt.raw)
		}
		store := state.Store(dir)
		if tt.saved != nil {
			save(t, dir, tt.saved)
		}
		if tt.unreadable {
			store = failing(dir, "load", &broken)
		}
		j, doc, damaged, err := Open(t.Context(), Call{Store: store, Running: &Running{}, Last: asItIs, Background: asItIs}, state.Upload{ID: id})
		if !errors.Is(err, tt.err) || !errors.Is(damaged, tt.damaged) {
			t.Errorf("%s: %v, damaged: %v", name, err, damaged)
		}
		if found := tt.saved != nil && tt.err == nil && tt.saved.MovedTo == ""; (doc != nil) != found {
			t.Errorf("%s: the saved upload is %+v", name, doc)
		} else if found && (!sameURI(doc.URI, uri) || !j.Saved() || j.draft.SourcePath != tt.saved.SourcePath || j.draft.SourceIdentity != tt.saved.SourceIdentity) {
			t.Errorf("%s: the saved upload is %+v, saved %v, and the next one has the source %q%q", name, doc, j.Saved(), j.draft.SourcePath, j.draft.SourceIdentity)
		}
		if j != nil {
			if _, err := dir.Lock(t.Context(), id); !errors.Is(err, state.ErrInUse) {
				t.Errorf("%s: the lease is not held: %v", name, err)
			}
			j.Close()
		}
		if unlock, err := dir.Lock(t.Context(), id); err != nil {
			t.Errorf("%s: the lease is not released: %v", name, err)
		} else {
			unlock()
		}
		if tt.damaged != nil && idsOf(t, dir) != "" {
			t.Errorf("%s: the damaged upload was not set aside", name)
		}
	}
}

// TestJournalWhenTheStoreFails checks that an upload needs one save before its first byte. A later save that
// fails is a warning, once until a save succeeds, and the next save tries again.
func TestJournalWhenTheStoreFails(t *testing.T) {
	s := newService(t)
	dir, _ := openDir(t)
	var full atomic.Bool
	full.Store(true)
	store := failing(dir, "save", &full)
	warnings := 0
	j, _ := open(t, store, func(c *Call, _ *state.Upload) {
		c.Stale = func(err error) {
			if warnings++; !errors.Is(err, errFault) {
				t.Errorf("warned of %v", err)
			}
		}
	})
	r := j.RecordFile(fileOf(q))
	r.Started(s.start(), 0)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for i, step := range []struct {
		full, change    bool
		persist         bool // instead of Save
		ctx             context.Context
		err             error
		warnings, saves int // so far
	}{
		{true, false, false, t.Context(), errFault, 0, 1},
		{false, false, false, t.Context(), nil, 0, 2},
		{false, false, false, t.Context(), nil, 0, 2}, // the store has it
		{true, true, true, t.Context(), errFault, 0, 3},
		{true, false, false, ended, nil, 0, 4}, // the upload is canceled, so that no caller waits for the warning
		{false, true, false, t.Context(), nil, 0, 5},
		{true, true, false, t.Context(), nil, 1, 6},
		{true, false, false, t.Context(), nil, 1, 7},
		{false, false, false, t.Context(), nil, 1, 8}, // nothing has changed, but the last save failed
		{true, true, false, t.Context(), nil, 2, 9},
	} {
		full.Store(step.full)
		if step.change {
			r.Rejected(int64(i))
		}
		write := j.Save
		if step.persist {
			write = j.Persist
		}
		err := write(step.ctx)
		if saves := store.calls - 1; !errors.Is(err, step.err) || warnings != step.warnings || saves != step.saves { // Open loads once
			t.Errorf("step %d: %v, %d warnings, %d saves, want %+v", i, err, warnings, saves, step)
		}
		if j.Saved() != (i > 0) || j.Old() != (i > 0) {
			t.Errorf("step %d: saved %v, old %v", i, j.Saved(), j.Old())
		}
	}
	full.Store(false)
	require.NoError(t, j.Save(t.Context()))
	full.Store(true)
	j.Close() // nothing must be saved
	if doc := load(t, dir, id); doc.RejectedAt != 10 || warnings != 2 {
		t.Errorf("saved %+v, %d warnings", doc, warnings)
	}
}

// TestClose checks which end of an upload leaves which saved upload.
func TestClose(t *testing.T) {
	s := newService(t)
	for _, tt := range []struct {
		name    string
		end     func(j *Journal) error
		full    bool
		left    int64 // the committed offset in the store; -1 if it has no upload
		warning bool
	}{
		{"nothing to save", func(*Journal) error { return nil }, false, q, false},
		{"nothing to save on a full disk", func(*Journal) error { return nil }, true, q, false},
		{"last save", func(j *Journal) error { j.Keep(); return nil }, false, 2 * q, false},
		{"last save on a full disk", func(j *Journal) error { j.Keep(); return nil }, true, q, true},
		{"finished", func(j *Journal) error { j.Keep(); return j.Discard() }, false, -1, false},
	} {
		dir, _ := openDir(t)
		save(t, dir, newDoc(id, s.start()))
		var full atomic.Bool
		warned := false
		j, _ := open(t, failing(dir, "save", &full), func(c *Call, _ *state.Upload) { c.Stale = func(error) { warned = true } })
		j.RecordStream().Ended(2 * q)
		full.Store(tt.full)
		if err := tt.end(j); err != nil || j.Saved() != (tt.left >= 0) {
			t.Errorf("%s: %v, saved %v", tt.name, err, j.Saved())
		}
		j.Close()
		left := int64(-1)
		if doc, err := dir.Load(t.Context(), id); err == nil {
			left = doc.Committed
		}
		if left != tt.left || warned != tt.warning || j.Deleted(t.Context()) != (left < 0) {
			t.Errorf("%s: %d committed, warned %v, deleted %v", tt.name, left, warned, j.Deleted(t.Context()))
		}
	}
}

// TestZeroJournal checks that an upload that is not saved has only the state.
func TestZeroJournal(t *testing.T) {
	j := &Journal{}
	j.Adopt(newDoc(id, newService(t).start()))
	r := j.RecordStream()
	if err := errors.Join(j.Save(t.Context()), j.Persist(t.Context()), r.Sending(t.Context(), 3, 0, 0), j.Discard(), j.LeaseLost()); err != nil {
		t.Error(err)
	}
	ctx, end := j.Guard(t.Context())
	if j.Saved() || j.Old() || j.Lease() != nil || j.Finished() != 0 || j.Size() != 4*q || j.doc.Committed != 3 || ctx.Err() != nil {
		t.Errorf("saved %v, old %v, %+v, %v", j.Saved(), j.Old(), j.doc, ctx.Err())
	}
	if end(); ctx.Err() == nil {
		t.Error("the context has not ended")
	}
}

// TestJournalOfParts checks the saved upload of a new upload in parts, and that it does not share its list of parts with
// the saved upload that was adopted, or that is being saved.
func TestJournalOfParts(t *testing.T) {
	for size, want := range map[int64]int{q: 1, 2*q - 1: 2, 2 * q: 2, 2*q + 1: 3} {
		j := &Journal{}
		key, err := session.NewEncryptionKey(bytes.Repeat([]byte{1}, 32))
		require.NoError(t, err)
		with := spec
		with.EncryptionKey = key
		j.SetSpec(with)
		j.Begin(chunk.Identity{Size: size}, &state.Parts{Size: q})
		if n := len(j.Parts().List); n != want || j.Size() != size || j.doc.Spec.EncryptionKey.HasSecret() || j.doc.Spec.EncryptionKey.IsZero() || j.doc.Created.IsZero() {
			t.Errorf("%d bytes: %d parts, want %d: %+v", size, n, want, j.doc)
		}
		saving := cloned(&j.doc)
		other := &Journal{}
		other.Adopt(saving)
		first := other.RecordPart(1, nil)
		first.Change(func(p *state.Part) { p.Generation = 7 })
		other.Change(func(p *state.Parts) { p.Over = true })
		if part := first.Part(); other.Finished() != 1 || j.Finished() != 0 || part.Generation != 7 || saving.Parts.Over || saving.Parts.List[0].Finished() {
			t.Errorf("%d and %d parts are finished, and the adopted Upload has %+v", other.Finished(), j.Finished(), saving.Parts)
		}
	}
}

// oneAtATime is a store that reports two saves at the same time.
type oneAtATime struct {
	state.Store
	t     *testing.T
	saves atomic.Int32
}

func (s *oneAtATime) Save(ctx context.Context, t *state.Upload) error {
	if s.saves.Add(1) > 1 {
		s.t.Error("two saves at the same time: the older saved upload may replace the newer one")
	}
	defer s.saves.Add(-1)
	return s.Store.Save(ctx, t)
}

// TestJournalSavesOneAtATime checks that parts which are saved at the same time leave the
// newest saved upload in the store.
func TestJournalSavesOneAtATime(t *testing.T) {
	const parts = 20
	dir, _ := openDir(t)
	j, _ := open(t, &oneAtATime{Store: dir, t: t})
	defer j.Close()
	j.Begin(chunk.Identity{Size: parts * q}, &state.Parts{Size: q, Prefix: "gcsup-parts/x/"})
	var saves sync.WaitGroup
	for i := range parts {
		saves.Go(func() {
			j.RecordPart(i+1, nil).Change(func(s *state.Part) { s.Generation = 1 })
			if err := j.Save(t.Context()); err != nil {
				t.Errorf("part %d: %v", i, err)
			}
		})
	}
	saves.Wait()
	for i, part := range load(t, dir, id).Parts.List {
		if !part.Finished() {
			t.Errorf("the store does not have part %d", i)
		}
	}
}

// TestPersistWaitsNoLongerThanItsContext checks that a save waits for another one only until its context is done. A
// save that need not wait reaches the store even then.
func TestPersistWaitsNoLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &slowLease{}
		j := &Journal{lease: lease, saving: make(chan struct{}, 1)}
		j.Begin(chunk.Identity{Size: q}, &state.Parts{Size: q})
		change := func() { j.RecordPart(1, nil).Change(func(s *state.Part) { s.Generation++ }) }
		first := make(chan error, 1)
		go func() { first <- j.Persist(t.Context()) }()
		synctest.Wait()
		change()
		ended, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second/2, func() { cancel(errFault) })
		began := time.Now()
		if err := j.Persist(ended); !errors.Is(err, errFault) || time.Since(began) != time.Second/2 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if err := <-first; err != nil {
			t.Error(err)
		}
		for range 20 {
			change()
			if err := j.Persist(ended); err != nil {
				t.Error(err)
			}
		}
		if n := len(lease.saved); n != 21 {
			t.Errorf("%d saves, want 21", n)
		}
	})
}

// slowLease needs a second for each save.
type slowLease struct {
	state.Lease
	saved []int64 // the generation of the first part
}

func (l *slowLease) Save(_ context.Context, t *state.Upload) error {
	time.Sleep(time.Second)
	l.saved = append(l.saved, t.Parts.List[0].Generation)
	return nil
}

// TestSaveSoonSavesTheNewest checks that changes during a save in the background need one other
// save, and that AwaitSaves waits for it.
func TestSaveSoonSavesTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &slowLease{}
		j := &Journal{lease: lease, background: t.Context(), saving: make(chan struct{}, 1)}
		j.Begin(chunk.Identity{Size: q}, &state.Parts{Size: q})
		generation := int64(0)
		changeAndSave := func(times int) {
			for range times {
				generation++
				j.RecordPart(1, nil).Change(func(s *state.Part) { s.Generation = generation })
				j.SaveSoon()
				synctest.Wait()
			}
			j.AwaitSaves()
		}
		began := time.Now()
		changeAndSave(3)
		changeAndSave(1)
		j.SaveSoon() // nothing has changed
		j.AwaitSaves()
		if want := []int64{1, 3, 4}; !slices.Equal(lease.saved, want) || time.Since(began) != 3*time.Second {
			t.Errorf("saved %v after %v, want %v after 3 s", lease.saved, time.Since(began), want)
		}
	})
}
