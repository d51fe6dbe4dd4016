package upload

import (
	"context"
	"slices"
	"time"

	"gcsup/chunk"
	"gcsup/session"
)

// Saved checksums of a source lie at most checkpointEvery apart, so a resume
// reads no more than that again, and what was sent while a save was under way.
// The first ones come sooner, and on a slow link one comes every
// checkpointTime: they tell whether a source whose change time differs still
// has the bytes that were sent.
const (
	checkpointEvery = 32 << 20
	checkpointFirst = 1 << 20
	checkpointTime  = time.Second
)

// checkpointDue reports whether a checkpoint at offset is worth a save, when
// the last one was at last, and since ago.
func checkpointDue(offset, last int64, since time.Duration) bool {
	gain := offset - last
	return gain >= checkpointEvery || gain >= max(checkpointFirst, last) || gain >= chunk.Quantum && since >= checkpointTime
}

// saver writes checkpoints to the store while a request is in flight, in a
// goroutine, so that a slow disk does not hold up the network. When saves
// cannot keep up, the newest one replaces the one that waits.
type saver struct {
	next chan *session.Token // holds at most one
	done chan struct{}
	err  error // of the last save; read after stop
}

func startSaver(ctx context.Context, store session.Store) *saver {
	s := &saver{next: make(chan *session.Token, 1), done: make(chan struct{})}
	ctx, stop := lingering(ctx)
	go func() {
		defer close(s.done)
		defer stop()
		for t := range s.next {
			s.err = store.Save(ctx, t)
		}
	}()
	return s
}

// linger is how long the store may take when the upload was cancelled.
const linger = 5 * time.Second

// lingering returns a context that outlives ctx a little: what is known is
// worth saving, and a Token that is done with worth deleting, also when the
// upload is being cancelled.
func lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(linger, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
}

// offer hands a Token over, which must not be changed any more. Only one
// goroutine may offer.
func (s *saver) offer(t *session.Token) {
	for {
		select {
		case s.next <- t:
			return
		default:
		}
		select {
		case <-s.next:
		default:
		}
	}
}

// stop waits for the save under way and returns the error of the last one.
func (s *saver) stop() error {
	close(s.next)
	<-s.done
	return s.err
}

// withCheckpoint is the Token with one more checkpoint, without those that no
// resume can need: before the greatest at or below what is committed.
func withCheckpoint(t session.Token, c chunk.Checkpoint) *session.Token {
	if last := len(t.Checkpoints) - 1; last < 0 || t.Checkpoints[last].Offset < c.Offset {
		t.Checkpoints = append(slices.Clone(t.Checkpoints), c)
	}
	return pruned(t)
}

// withoutUnsent is the Token without checksums of what was read and never sent:
// a copy of the source may have other bytes there.
func withoutUnsent(token *session.Token) *session.Token {
	t := *token
	t.Checkpoints = slices.DeleteFunc(slices.Clone(t.Checkpoints), func(c chunk.Checkpoint) bool { return c.Offset > t.HighWater })
	return &t
}

func pruned(t session.Token) *session.Token {
	base := t.Checkpoint(t.Committed).Offset
	t.Checkpoints = slices.DeleteFunc(slices.Clone(t.Checkpoints), func(c chunk.Checkpoint) bool { return c.Offset < base })
	return &t
}
