package upload

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"gcsup/session"
)

// SessionState is the state of the session of a saved upload.
type SessionState int

// The states of a session.
const (
	SessionUnknown  SessionState = iota // the service was not asked, or did not answer
	SessionOpen                         // the upload can be resumed
	SessionFinished                     // the object was created
	SessionGone                         // the service no longer has the session
	SessionCanceled                     // a client canceled the session
)

var sessionStates = [...]string{
	SessionUnknown: "unknown", SessionOpen: "open", SessionFinished: "finished", SessionGone: "gone", SessionCanceled: "canceled",
}

// String returns the name of s in lower case, such as "open".
func (s SessionState) String() string {
	if s < 0 || int(s) >= len(sessionStates) {
		return fmt.Sprintf("SessionState(%d)", int(s))
	}
	return sessionStates[s]
}

// Holding describes what the service stores of a saved upload.
type Holding struct {
	State  SessionState
	Stored int64           // SessionOpen: bytes that are durable at the service
	Object *session.Object // SessionFinished: the object that the upload created; otherwise nil
}

// lost reports whether the service has nothing of the upload.
func (h Holding) lost() bool { return h.State == SessionGone || h.State == SessionCanceled }

// Query requests the state of the saved upload with an ID from the service, see
// [Uploader.Saved]. It changes nothing at the service and does not read the source.
//
// A session counts as gone only after two equal answers of the service, and as
// canceled only after its status 499. After the same answers, an upload would start
// over. Query retries failed requests like an upload.
//
// A session must not have two requests at a time. If another process works on the
// upload, the error wraps [session.ErrInUse]. [SavedUpload.Committed] has what that
// process last saved. The error wraps [session.ErrNoToken] if there is no such upload,
// and [session.ErrURIMismatch] if it was started at another endpoint.
func (u *Uploader) Query(ctx context.Context, id string) (Holding, error) {
	if u.invalid != nil {
		return Holding{}, u.invalid
	}
	if u.opts.Store == nil {
		return Holding{}, fmt.Errorf("query: %w: there is no store", session.ErrNoToken)
	}
	ctx, done := u.storeCall(ctx)
	defer done()
	token, lease, err := lockSaved(ctx, u.opts.Store, id)
	if err != nil {
		return Holding{}, err
	}
	defer release(ctx, lease)
	j := u.inspection(ctx, token, lease, u.newBudget())
	defer j.inspected(ctx)
	return j.query(ctx, token)
}

// inspection returns a job that queries a saved upload. The caller holds the lease of
// the upload, and must call inspected afterwards.
func (u *Uploader) inspection(ctx context.Context, token *session.Token, lease session.Lease, b *budget) *job {
	j := u.newJob(ctx, token.Spec, b)
	j.transfer.wire.lease = lease
	spec := token.Spec
	if with, err := j.unlock(spec, session.EncryptionKey{}); err == nil {
		spec = with // otherwise query without the key, which the service may accept
	}
	j.identify(token.ID, spec)
	j.events.unnumber() // an inspection has no terminal event
	return j
}

// inspected ends an inspection.
func (j *job) inspected(ctx context.Context) {
	j.transfer.retry.close()
	j.events.close(ctx, nil)
}

// queryTimeout bounds a request that sends no data. The stall detection would allow
// more time.
const queryTimeout = 30 * time.Second

// query requests the state of the upload of token from the service. The caller must
// hold the lease of the upload.
func (j *job) query(ctx context.Context, token *session.Token) (Holding, error) {
	if err := j.adopt(token); err != nil {
		return Holding{}, err
	}
	if token.Parts != nil {
		parts, err := j.u.partsOf(token)
		if err != nil {
			return Holding{}, err
		}
		return parts.query(ctx, j, token)
	}
	state := session.State{
		Size: token.ObjectSize(), Committed: token.Committed, Sent: token.HighWater,
		Replayable: true, Adopted: true, MayExist: token.HighWater == token.ObjectSize(),
	}
	for {
		reply := j.bounded(ctx, func(ctx context.Context) session.Reply { return j.transfer.wire.query(ctx, token.URI) })
		if ctx.Err() != nil {
			return Holding{}, fmt.Errorf("query: %w: %v", ctx.Err(), context.Cause(ctx))
		}
		switch {
		case reply.Status == 308 && reply.Redirect == "" && reply.Committed >= 0:
			return Holding{State: SessionOpen, Stored: reply.Committed}, nil
		case (reply.Status == 200 || reply.Status == 201) && reply.Object != nil:
			return Holding{State: SessionFinished, Object: reply.Object}, nil
		}
		var action session.Action
		state, action = session.Decide(state, reply)
		switch action.Step {
		case session.Query:
		case session.Begin, session.Check:
			if reply.Status == http.StatusNotFound || reply.Status == http.StatusGone {
				return Holding{State: SessionGone}, nil // confirmed by a second answer
			}
			return Holding{}, j.transfer.retry.failure(reply.Refusal(), nil)
		case session.Fail:
			if errors.Is(action.Err, session.ErrCanceled) {
				return Holding{State: SessionCanceled}, nil
			}
			return Holding{}, j.transfer.retry.failure(action.Err, nil)
		default: // the committed offset is 0
			return Holding{State: SessionOpen, Stored: state.Committed}, nil
		}
		if !action.Wait {
			continue
		}
		if err := j.transfer.retry.Wait(ctx, action.Err, action.RetryAfter); err != nil {
			if ctx.Err() != nil {
				err = fmt.Errorf("query: %w: %v", ctx.Err(), context.Cause(ctx))
			}
			return Holding{}, err
		}
	}
}

// adopt checks that the session of token may be used with this endpoint.
func (j *job) adopt(token *session.Token) error {
	client := j.u.client
	if err := client.Adopt(token); err != nil {
		if token.Endpoint != client.Endpoint() {
			return fmt.Errorf("upload %s was started at %s: %w", token.ID, token.Endpoint, session.ErrURIMismatch)
		}
		return err
	}
	return nil
}

// bounded makes one request that sends no data, with queryTimeout.
func (j *job) bounded(ctx context.Context, do func(context.Context) session.Reply) session.Reply {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	return do(ctx)
}

// holds reports whether o, which a session created, is still at the destination.
func (j *job) holds(ctx context.Context, o *session.Object) (bool, error) {
	r, err := j.transfer.retry.repeat(ctx, func(ctx context.Context) session.Reply { return j.bounded(ctx, j.transfer.wire.stat) })
	switch {
	case ctx.Err() != nil:
		return false, fmt.Errorf("stat: %w: %v", ctx.Err(), context.Cause(ctx))
	case err != nil:
		return false, err
	}
	return r.Status == 200 && r.Object != nil && o.Generation > 0 && r.Object.Generation == o.Generation, nil
}
