package upload

import (
	"context"
	"errors"
)

// storedTimeout bounds the question what the service stores when a call is interrupted. The
// caller waits for the answer.
const storedTimeout = abandonAfter * 3 / 4

// askStored asks the service once what it stores, if the call was interrupted while bytes were
// on their way. Their request has no reply, so that the committed offset may be far behind.
// ok is false if the offset did not change.
func (r *run) askStored(ctx context.Context, err error) (ok bool) {
	_, interrupted := errors.AsType[*InterruptedError](err)
	_, sent, committed := r.pos.load()
	if !interrupted || r.uri.IsZero() || r.resume != nil || sent <= committed {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storedTimeout)
	defer cancel()
	reply := r.wire.query(ctx, r.uri)
	held, open := reply.Held()
	if !open || held <= committed || held > sent {
		return false // the next call asks again
	}
	r.pos.committed.Store(held)
	return true
}
