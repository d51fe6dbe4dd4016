package upload

import (
	"context"
	"errors"

	"gcsup/session"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/source"
)

// startOver is the error of a step after which the job uploads from byte 0, because what was
// sent or saved cannot be used.
type startOver struct {
	why  string
	drop session.URI                 // the session to cancel; zero if there is none
	send func(context.Context) error // sends the file in parts, because one connection is slow; nil for the usual first step
}

func (e *startOver) Error() string { return "the upload starts over: " + e.why }

// untilMade makes the first step. As long as a step starts over, it uploads the file from byte 0.
func (j *job) untilMade(ctx context.Context, step func(context.Context) error) error {
	for {
		err := step(ctx)
		over, ok := errors.AsType[*startOver](err)
		if !ok {
			return err
		}
		if err := j.discard(ctx, over); err != nil {
			return err
		}
		if step = j.fresh; over.send != nil {
			step = over.send
		}
	}
}

// discard resets the progress, deletes the saved upload, and then cancels its session. After a
// crash in between, the session expires: if it were canceled first, the next call would find a
// saved upload whose session another client seems to have canceled.
func (j *job) discard(ctx context.Context, over *startOver) error {
	j.source.Restart()
	j.requests.Pos.Sent.Store(0)
	j.requests.Pos.Committed.Store(0)
	j.result.update(func(r *Result) { r.Resumed, r.ResumedFrom = false, 0 })
	j.setSpec(j.want)
	kind := Discarded
	if over.send != nil {
		kind = Divided
	}
	j.events.post(Event{Kind: kind, Cause: over.why})
	switch err := j.journal.Discard(); {
	case err == nil:
		j.wire().Drop(ctx, over.drop)
	case over.send != nil: // the Token of the parts replaces this one
		j.events.post(Event{Kind: Warning, Cause: err.Error()})
	default:
		return err
	}
	return nil
}

// overBecause returns the error of a conversation, or a startOver with the session uri if the error
// is a reason for that.
func (j *job) overBecause(err error, uri session.URI) error {
	if differs, ok := errors.AsType[*source.CopyDiffers](err); ok && j.u.opts.RestartChanged {
		// Only the server's checksum showed that the file is not the one of the saved session.
		return &startOver{why: engine.SourceError(differs).Error()}
	}
	if other, ok := errors.AsType[*source.OtherCompressor](err); ok {
		j.want = j.spec // the options of the first run, as after the loss of a session
		return &startOver{why: other.Error(), drop: uri}
	}
	return err
}
