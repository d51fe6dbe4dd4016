package saved

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/internal/require"
	"gcsup/session/state"
)

// TestList checks what is listed of a store, in the order of the IDs.
func TestList(t *testing.T) {
	uri := newService(t).start()
	dir, path := openDir(t)
	unmoved, moved := newDoc("b-unmoved", uri), newDoc("c-moved", uri)
	unmoved.MovedTo, moved.MovedTo = "none", "d-new"
	save(t, dir, newDoc("a", uri), unmoved, moved, newDoc("d-new", uri), newDoc("g-finished", uri), newDoc("h", uri))
	damage(t, path, "e-damaged", "x")
	damage(t, path, "f-newer", newer)
	unlock, err := dir.Lock(t.Context(), "h")
	require.NoError(t, err)
	defer unlock()
	for _, store := range []state.Store{dir, struct{ state.Store }{dir}} { // the second is no LockChecker
		var got []string
		for e := range List(t.Context(), store) {
			what := e.ID
			switch {
			case errors.Is(e.Err, state.ErrCorrupt):
				what += " damaged"
			case errors.Is(e.Err, state.ErrVersion):
				what += " newer"
			case e.Err != nil || e.Upload == nil || e.Upload.ID != e.ID:
				t.Errorf("%+v", e)
			}
			if e.InUse {
				what += " in use"
			}
			got = append(got, what)
		}
		want := []string{"a", "b-unmoved", "d-new", "e-damaged damaged", "f-newer newer", "g-finished", "h"}
		if store == state.Store(dir) {
			want[6] += " in use"
		}
		if !slices.Equal(got, want) {
			t.Errorf("listed %q, want %q", got, want)
		}
	}
	require.NoError(t, dir.Close())
	for e := range List(t.Context(), dir) {
		if e.ID != "" || !errors.Is(e.Err, fs.ErrClosed) {
			t.Errorf("a store that cannot be listed: %+v", e)
		}
	}
}

// slow is a store that needs a second for each load.
type slow struct {
	state.Store
	now, most atomic.Int32
}

func (s *slow) Load(ctx context.Context, id string) (*state.Upload, error) {
	s.most.Store(max(s.most.Load(), s.now.Add(1)))
	defer s.now.Add(-1)
	time.Sleep(time.Second)
	return s.Store.Load(ctx, id)
}

// TestListLoadsAhead checks that eight saved uploads are loaded at a time, that one which is finished meanwhile
// is left out, and that the store is not used after the loop, however it ends.
func TestListLoadsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		uri := newService(t).start()
		dir, _ := openDir(t)
		const count = 20
		for i := range count {
			save(t, dir, newDoc(fmt.Sprintf("upload%02d", i), uri))
		}
		for _, tt := range []struct {
			stopAt int // -1: never; -2: the context ends
			loaded int
			took   time.Duration
		}{{-1, count - 1, 3 * time.Second}, {0, 1, time.Second}, {-2, 2, time.Second}} {
			store, began, n := &slow{Store: dir}, time.Now(), 0
			ctx, cancel := context.WithCancelCause(t.Context())
			for e := range List(ctx, store) {
				if tt.stopAt == -2 && n == 1 {
					if e.ID != "" || !errors.Is(e.Err, context.Canceled) || !strings.Contains(e.Err.Error(), "enough") {
						t.Errorf("after the end of the context: %+v", e)
					}
				} else if e.Err != nil || e.ID != fmt.Sprintf("upload%02d", n) {
					t.Errorf("entry %d: %+v", n, e)
				}
				if n == 0 && tt.stopAt == -1 {
					require.NoError(t, dir.Delete(t.Context(), fmt.Sprintf("upload%02d", count-1)))
				}
				if tt.stopAt == -2 {
					cancel(errors.New("enough"))
				}
				if n++; n-1 == tt.stopAt {
					break
				}
			}
			if took := time.Since(began); n != tt.loaded || took != tt.took || store.most.Load() != 8 || store.now.Load() != 0 {
				t.Errorf("%+v: %d entries after %v, %d loads at a time and %d now", tt, n, took, store.most.Load(), store.now.Load())
			}
			cancel(nil)
		}
	})
}
