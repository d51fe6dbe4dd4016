package saved

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/internal/grace"
	"gcsup/internal/require"
	"gcsup/session/state"
)

const ttl = 2 * time.Minute // of a lease in a bucket

// TestOpenWaitsForADeadProcess checks that Open waits until the lease of a process that may have died expires,
// and looks at least every ten seconds. The first process is suspended: when it continues, it saves and sends
// nothing more.
func TestOpenWaitsForADeadProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t)
		first, network := s.share("first")
		second, _ := s.share("second")
		j, _ := open(t, first)
		record := j.RecordStream()
		j.draft.Spool, j.draft.SourcePath = &state.Spool{Dir: "/spool"}, ""
		record.Started(s.start(), 0)
		if err := record.Sending(t.Context(), 3, 0, 0); err != nil || !j.Saved() {
			t.Fatal(err)
		}
		request, end := j.Guard(t.Context())
		defer end()
		network.down.Store(true)
		began, waits := time.Now(), 0
		other, doc := open(t, second, func(c *Call, _ *state.Upload) {
			c.Waiting = func(h *state.HeldError) {
				if waits++; h.Holder() != "first" {
					t.Errorf("waits for %v", h)
				}
			}
		})
		if took := time.Since(began); took < ttl-10*time.Second || took > ttl+10*time.Second || waits < int(ttl/(10*time.Second))-1 {
			t.Errorf("acquired after %v and %d waits", took, waits)
		}
		if doc == nil || doc.Committed != 3 {
			t.Errorf("the second process has %+v", doc)
		}
		network.down.Store(false)
		record.Ended(4)
		j.Keep()
		if err := j.Save(t.Context()); !errors.Is(err, state.ErrInUse) || !errors.Is(j.LeaseLost(), state.ErrInUse) || j.Saved() {
			t.Errorf("a save after the lease is lost: %v, and then %v", err, j.LeaseLost())
		}
		synctest.Wait()
		if !errors.Is(context.Cause(request), state.ErrInUse) {
			t.Errorf("the request of the first process: %v", context.Cause(request))
		}
		j.stale = func(err error) {
			if !errors.Is(err, state.ErrInUse) {
				t.Error(err)
			}
		}
		j.Close()
		if doc := load(t, second, id); doc.Committed != 3 || j.Deleted(t.Context()) {
			t.Errorf("the store has %+v", doc)
		}
		if err := other.Discard(); err != nil || !j.Deleted(t.Context()) {
			t.Errorf("discarded: %v", err)
		}
		other.Close()
	})
}

// TestOpenOfALivingProcess checks that Open fails when it sees the holder renew its lease, at once if the
// store has locks, and with the cause of its context if that ends.
func TestOpenOfALivingProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t)
		first, _ := s.share("first")
		second, _ := s.share("second")
		dir, _ := openDir(t)
		enough := errors.New("enough")
		for _, tt := range []struct {
			stores      [2]state.Store
			limit       time.Duration
			want        error
			least, most time.Duration
		}{
			{[2]state.Store{first, second}, time.Hour, state.ErrInUse, time.Second, ttl},
			{[2]state.Store{first, second}, 25 * time.Second, context.DeadlineExceeded, 25 * time.Second, 25 * time.Second},
			{[2]state.Store{dir, dir}, time.Hour, state.ErrInUse, 0, time.Second},
		} {
			j, _ := open(t, tt.stores[0])
			ctx, cancel := context.WithTimeoutCause(t.Context(), tt.limit, enough)
			began, waits := time.Now(), 0
			_, _, _, err := Open(ctx, Call{Store: tt.stores[1], Waiting: func(*state.HeldError) { waits++ }}, state.Upload{ID: id})
			took := time.Since(began)
			if !errors.Is(err, tt.want) || ctx.Err() != nil != strings.Contains(err.Error(), enough.Error()) || took < tt.least || took > tt.most || (waits > 0) != (tt.least > 0) {
				t.Errorf("%v after %v and %d waits, want %v after %v to %v", err, took, waits, tt.want, tt.least, tt.most)
			}
			cancel()
			j.Close()
		}
	})
}

// TestLingering checks that the last calls of the store outlive a canceled upload a little, and that an
// upload can be deleted then.
func TestLingering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, stop := range []bool{false, true} {
			ctx, cancel := context.WithCancel(t.Context())
			longer, end := Lingering(ctx)
			time.Sleep(time.Hour)
			cancel()
			canceled := time.Now()
			time.Sleep(grace.Store - 1)
			if longer.Err() != nil {
				t.Error("the longer context has ended early")
			}
			if stop {
				end()
			}
			<-longer.Done()
			if took := time.Since(canceled); took > grace.Store || (took < grace.Store) != stop {
				t.Errorf("ended after %v", took)
			}
			end()
		}
		s := newService(t)
		store, network := s.share("first")
		lease, err := state.Acquire(t.Context(), store, id)
		require.NoError(t, err)
		save(t, store, newDoc(id, s.start()))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := Delete(ctx, lease); err != nil {
			t.Error(err)
		}
		network.down.Store(true)
		began := time.Now()
		if Release(ctx, lease); time.Since(began) > grace.Store {
			t.Errorf("released after %v", time.Since(began))
		}
		network.down.Store(false)
	})
}

// TestRunningStop checks that Stop interrupts the upload with an ID, and waits until its lease is released.
func TestRunningStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, _ := openDir(t)
		running, paused := &Running{}, errors.New("paused")
		if err := running.Stop(t.Context(), id, paused); err != nil {
			t.Errorf("no upload: %v", err)
		}
		for _, interruptible := range []bool{true, false} {
			ctx, interrupt := context.WithCancelCause(t.Context())
			j, _ := open(t, dir, func(c *Call, _ *state.Upload) {
				if c.Running = running; interruptible {
					c.Interrupt = interrupt
				}
			})
			if err := running.Stop(t.Context(), "another", paused); err != nil || ctx.Err() != nil {
				t.Errorf("another upload: %v, and this one: %v", err, ctx.Err())
			}
			short, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("too long"))
			err := running.Stop(short, id, paused)
			if errors.Is(err, context.DeadlineExceeded) != interruptible || err != nil && !strings.Contains(err.Error(), "too long") || (context.Cause(ctx) == paused) != interruptible {
				t.Errorf("interruptible %v: %v, and the upload: %v", interruptible, err, context.Cause(ctx))
			}
			time.AfterFunc(time.Minute, j.Close)
			began := time.Now()
			if err := running.Stop(t.Context(), id, paused); err != nil || (time.Since(began) == time.Minute) != interruptible {
				t.Errorf("interruptible %v: stopped after %v, %v", interruptible, time.Since(began), err)
			}
			time.Sleep(time.Until(began.Add(2 * time.Minute)))
			cancel()
			interrupt(nil)
		}
		if err := running.Stop(t.Context(), id, paused); err != nil {
			t.Errorf("after the uploads: %v", err)
		}
	})
}
