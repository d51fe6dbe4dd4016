package saved

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/session/state"
)

// oneAtATime is a store that reports two saves at the same time.
type oneAtATime struct {
	state.Store
	t     *testing.T
	saves atomic.Int32
}

func (s *oneAtATime) Save(ctx context.Context, t *state.Token) error {
	if s.saves.Add(1) > 1 {
		s.t.Error("two saves at the same time: the older Token may replace the newer one")
	}
	defer s.saves.Add(-1)
	return s.Store.Save(ctx, t)
}

// TestJournalSavesOneAtATime checks that parts which are saved at the same time leave the
// newest Token in the store.
func TestJournalSavesOneAtATime(t *testing.T) {
	const parts = 20
	dir, err := state.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	const id = "00112233445566778899"
	same := func(ctx context.Context) context.Context { return ctx }
	draft := state.Token{ID: id, Endpoint: "http://gcs.test", Spec: session.Spec{Bucket: "bkt", Object: "obj"}, SourcePath: "/source"}
	j, _, _, err := Open(t.Context(), Call{Running: &Running{}, Store: &oneAtATime{Store: dir, t: t}, Last: same, Background: same}, draft)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	j.Begin(chunk.Identity{Size: parts * chunk.Granularity}, &state.Parts{Size: chunk.Granularity, Prefix: "gcsup-parts/x/"})
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
	token, err := dir.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range token.Parts.List {
		if !part.Finished() {
			t.Errorf("the store does not have part %d", i)
		}
	}
}

// slowLease needs a second for each save.
type slowLease struct {
	state.Lease
	saved []int64 // the generation of the first part
}

func (l *slowLease) Save(_ context.Context, t *state.Token) error {
	time.Sleep(time.Second)
	l.saved = append(l.saved, t.Parts.List[0].Generation)
	return nil
}

// TestSaveSoonSavesTheNewest checks that changes during a save in the background need one other
// save, and that AwaitSaves waits for it.
func TestSaveSoonSavesTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &slowLease{}
		j := &Journal{lease: lease, background: t.Context()}
		j.Begin(chunk.Identity{Size: chunk.Granularity}, &state.Parts{Size: chunk.Granularity})
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
