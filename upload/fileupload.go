package upload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/content"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/parts"
	"gcsup/upload/internal/saved"
	"gcsup/upload/internal/source"
)

// fileUpload makes the object of an open file, step by step: [choose] decides which one is next.
type fileUpload struct {
	*job
	know facts

	token   *state.Token // the saved upload; nil if there is none
	first   Spec         // the options with which the saved upload began, with the secret of its key
	given   Spec         // the options of the call, without defaults
	damaged bool         // the saved upload was damaged, and set aside

	loaded  content.Loaded // of a small source
	chosen  *state.Parts   // of a new upload in parts
	divided *parts.Upload  // of a saved upload in parts; nil before it is needed
	session *engine.Run    // the last one
	failed  error          // with which the session ended; nil if the object is made
	because error          // why the upload may have to start over
}

// newUpload returns the upload of a file that is not saved.
func (j *job) newUpload() *fileUpload {
	return &fileUpload{job: j, know: facts{made: no, replace: j.u.opts.RestartChanged}}
}

// resuming returns the upload of a file that token describes. given has the options of the call, or is nil if they are
// those of token.
func (j *job) resuming(token *state.Token, given *Spec) (*fileUpload, error) {
	f := j.newUpload()
	f.token = token
	switch {
	case token.Parts == nil:
		f.know.saved = savedSession
	case token.Parts.Over:
		f.know.saved, f.know.made = savedRemoval, unknown
	default:
		f.know.saved = savedParts
	}
	if given != nil {
		f.know.restart = j.u.opts.Restart
		if f.given = *given; j.rule == SkipSameTime {
			f.given = sameMTime(f.given, token.Spec)
		}
		f.know.differs = token.Spec.Conflict(f.given) != ""
	}
	if f.know.restart || f.know.differs {
		return f, nil
	}
	if j.want.EncryptionKey.IsZero() {
		j.want.EncryptionKey = token.Spec.EncryptionKey // if the upload starts over, the object is still encrypted
	}
	var err error
	f.first, err = j.unlock(token.Spec, j.want.EncryptionKey)
	j.want.EncryptionKey = f.first.EncryptionKey
	if why := j.useless(token); why != "" {
		f.know.unusable, f.because = true, errors.New(why)
	}
	return f, err
}

// run takes one step after the other until the object is made, or the upload fails.
func (f *fileUpload) run(ctx context.Context) error {
	for {
		var err error
		switch next := choose(f.know); next.step {
		case lookAgain:
			err = f.lookAgain(ctx)
		case findObject:
			err = f.findObject(ctx)
		case compareSource:
			err = f.compareSource(ctx)
		case prepare:
			err = f.prepare(ctx)
		case divide:
			err = f.divide(ctx)
		case startOver:
			err = f.startOver(ctx, next.why)
		case resumeSession:
			f.resumeSession(ctx)
		case newSession:
			f.newSession(ctx, nil)
		case measureSession:
			f.newSession(ctx, f.measure)
		case continueSession:
			f.session.Unmeasured()
			f.attempt(ctx)
		case resumeParts:
			return f.resumeParts(ctx)
		case sendParts:
			f.journal.Begin(f.file.Identity(), f.chosen)
			return f.sendParts(ctx, f.inParts(true))
		case insert:
			return f.insert(ctx, f.source, f.loaded)
		case refuseOptions:
			return fmt.Errorf("%w: %s", state.ErrOptionsDiffer, f.token.Spec.Conflict(f.given))
		case refuseSource:
			return engine.SourceError(f.because)
		case finish:
			return f.finishSession(ctx, f.session, f.failed)
		case stop:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// lookAgain finds out whether another process made the object meanwhile.
func (f *fileUpload) lookAgain(ctx context.Context) error {
	made, err := f.madeMeanwhile(ctx, f.given, f.damaged)
	f.know.made = factOf(made)
	return err
}

// findObject finds out whether the saved upload, of which only the removal is left, made its object.
func (f *fileUpload) findObject(ctx context.Context) error {
	f.divided = f.inParts(false)
	made, err := f.divided.Find(ctx)
	f.know.made, f.because = factOf(made != nil), errors.New("it had ended, and only its cleanup was left")
	return err
}

// compareSource compares the file with the one with which the saved upload began, and sets the options with which it
// began.
func (f *fileUpload) compareSource(ctx context.Context) error {
	if err := f.settle(ctx, f.file); err != nil {
		return err
	}
	spec := f.first
	spec.NoClobber = spec.NoClobber || f.spec.NoClobber
	f.setSpec(spec)
	f.compress()
	err := f.sameSource(ctx, f.token)
	if err != nil && !errors.Is(err, session.ErrSourceChanged) {
		return err
	}
	f.know.changed, f.because = factOf(err != nil), err
	return nil
}

// prepare checks the preconditions, and loads the source if it is small.
func (f *fileUpload) prepare(ctx context.Context) error {
	f.compress()
	if f.spec.Gzip {
		f.source.Restart()
		f.setSpec(withMetadata(f.spec, session.UncompressedSizeKey, f.file.Total()))
	}
	if err := f.precondition.Look(ctx, f.wire()); err != nil {
		return err
	}
	if f.precondition.Unmet() != nil {
		f.know.unmet = yes
		return nil
	}
	load := f.source.Load
	if !f.small() {
		if err := f.settle(ctx, f.file); err != nil {
			return err
		}
		load = f.source.LoadWindow
	}
	var err error
	if f.loaded, err = load(ctx); err != nil {
		return f.requests.SourceFailed(ctx, err)
	}
	f.know.unmet, f.know.small = no, factOf(f.loaded.Open != nil && f.u.single(f.loaded.Size))
	if f.know.small == yes {
		return nil
	}
	return f.settle(ctx, f.file)
}

// divide chooses the parts of the file. The reason why it has none is reported, unless its first bytes are measured.
func (f *fileUpload) divide(ctx context.Context) error {
	chosen, why, err := f.chooseParts(ctx)
	if err != nil && f.know.tried == slowSession {
		f.know.tried, f.failed = sessionEnded, err // the session stays
		return nil
	}
	f.chosen = chosen
	switch {
	case chosen != nil:
		f.know.parts = inParts
	case !why.Unmeasured:
		f.know.parts = undivided
		f.reportUndivided(why)
	case f.know.tried == noSession:
		f.know.parts = unmeasured
	default: // the measurement is too old by now
		f.know.parts = undivided
	}
	return err
}

// newSession uploads the file through a new session. measure measures its first bytes, if it is not nil.
func (f *fileUpload) newSession(ctx context.Context, measure func() engine.Measure) {
	var record engine.Record = engine.Unrecorded{}
	if f.know.unmet == no {
		record = f.journal.RecordFile(f.source)
	}
	t := f.newTransfer(f.source, record, measure)
	f.session = engine.NewRun(t, &f.precondition, session.State{Size: f.source.Total()})
	f.attempt(ctx)
}

// resumeSession continues the saved session.
func (f *fileUpload) resumeSession(ctx context.Context) {
	f.source.Adopt(savedSource(f.token))
	t := f.newTransfer(f.source, f.journal.RecordFile(f.source), nil)
	size := f.source.Total()
	t.Pos.Size.Store(size)
	t.Pos.Committed.Store(f.token.Committed)
	f.session = engine.ResumedRun(t, &f.precondition, saved.Adopted(f.token.Session, size), engine.Resumption{
		URI: f.token.URI, Opened: f.token.Created, Seek: f.source.Seek, Resumed: f.resumed,
	})
	f.attempt(ctx)
}

// attempt drives the session until it has ended, or something suggests another step.
func (f *fileUpload) attempt(ctx context.Context) {
	f.failed = f.makeInSession(ctx, f.session)
	f.know.tried = sessionEnded
	if slow, ok := errors.AsType[*slowConnection](f.failed); ok {
		f.know.tried, f.know.parts, f.because = slowSession, undecided, slow
	} else if differs, ok := errors.AsType[*source.CopyDiffers](f.failed); ok {
		f.know.tried, f.because = wrongSource, engine.SourceError(differs)
	} else if other, ok := errors.AsType[*source.OtherCompressor](f.failed); ok {
		f.know.tried, f.because = wrongBytes, other
	}
}

// startOver discards what is saved and sent. The saved upload is deleted before its session is canceled. After a crash
// in between, the session expires: if it were canceled first, the next call would find a saved upload whose session
// another client seems to have canceled.
func (f *fileUpload) startOver(ctx context.Context, why reason) error {
	var drop session.URI
	usable := f.token != nil && state.Adopt(f.u.client, f.token) == nil
	switch {
	case why == slowLink || why == otherCompressor:
		drop = f.session.URI
	case usable && f.token.Parts != nil && why != otherEndpoint:
		if err := f.abandonParts(ctx, f.token); err != nil {
			return err
		}
	case usable && (why == asRequested || why == sourceChanged):
		drop = f.token.URI
	}
	if why == otherCompressor {
		f.want = f.spec // the options of the first run, as after the loss of a session
	}
	f.source.Restart()
	f.requests.Pos.Sent.Store(0)
	f.requests.Pos.Committed.Store(0)
	f.result.update(func(r *Result) { r.Resumed, r.ResumedFrom = false, 0 })
	f.setSpec(f.want)
	kind, cause := Discarded, "discarded, as requested"
	if why == slowLink {
		kind = Divided
	}
	if why != asRequested {
		cause = f.because.Error()
	}
	f.events.post(Event{Kind: kind, Cause: cause})
	switch err := f.journal.Discard(); {
	case err == nil:
		f.wire().Drop(ctx, drop)
	case kind == Divided: // the Token of the parts replaces this one
		f.events.post(Event{Kind: Warning, Cause: err.Error()})
	default:
		return err
	}
	f.token, f.know = nil, f.know.startedOver(why)
	return nil
}

// slowConnection is the error of a request whose first bytes were slow.
type slowConnection struct{ rate int64 } // bytes per second

func (e *slowConnection) Error() string {
	return fmt.Sprintf("one connection reaches only %.1f MiB/s", float64(e.rate)/(1<<20))
}

// measure returns the measurement of the rate of a single connection. If it is high enough, the reason is reported,
// and otherwise the request ends with a slowConnection.
func (f *fileUpload) measure() engine.Measure {
	limit, link := f.u.opts.RateLimit, f.u.link
	held, measure := limit.held(), link.Measure()
	return func(n int64, took time.Duration) (done bool, err error) {
		rate, done := measure(n, took-(limit.held()-held))
		if !done {
			return false, nil
		}
		if why, one := link.WhyUndivided(f.u.opts.Parallel.orOne()).(parts.Reason); one {
			f.reportUndivided(why)
			return true, nil
		}
		return true, &slowConnection{rate}
	}
}
