package upload

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/parts"
)

// uploadSavableFile is uploadSavable for the file at path.
func (j *job) uploadSavableFile(ctx context.Context, path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	id, err := j.u.ID(path, j.spec)
	if err != nil {
		return err
	}
	return j.uploadSavable(ctx, id, abs, "")
}

// uploadSavable uploads the open source, with its saved session if there is one. path
// is absolute, or "" for a source with an identity that the caller gave.
func (j *job) uploadSavable(ctx context.Context, id, path, identity string) error {
	ctx = j.storeContext(ctx)
	store, want := j.u.opts.Store, j.spec
	j.want = want.Resolved()
	j.identify(id, j.want)
	if j.small() && !savedIn(ctx, store, id) {
		return j.fresh(ctx)
	}
	journal, token, damaged, err := j.openJournal(ctx, id, j.waitForHolder)
	if err != nil {
		return err
	}
	defer journal.close()
	j.keep(journal, token, path, identity)
	switch {
	case token != nil && j.u.opts.Restart:
		if err := j.abandon(ctx, token); err != nil {
			return err
		}
		uri := token.URI
		if state.Adopt(j.u.client, token) != nil {
			uri = session.URI{} // of another endpoint
		}
		return j.startOver(ctx, "discarded, as requested", uri)
	case token != nil:
		if j.timed() {
			want = sameMTime(want, token.Spec)
		}
		if conflict := token.Spec.Conflict(want); conflict != "" {
			return fmt.Errorf("%w: %s", state.ErrOptionsDiffer, conflict)
		}
		if j.want.EncryptionKey.IsZero() {
			// If the upload starts over, the object is still encrypted.
			j.want.EncryptionKey = token.Spec.EncryptionKey
		}
		return j.resume(ctx, token)
	case damaged != nil:
		j.events.post(Event{Kind: Discarded, Cause: damaged.Error()})
		j.warnOfLostParts(id, want.Bucket)
	default:
		if done, err := j.madeByHolder(ctx, want); done || err != nil {
			return err
		}
	}
	return j.fresh(ctx)
}

// warnOfLostParts warns of what a damaged upload may have stored in parts. Its Token does not
// tell.
func (j *job) warnOfLostParts(id, bucket string) {
	if j.u.opts.Parallel == nil {
		return // uploads of this program are not in parts
	}
	j.events.post(Event{Kind: Warning, Cause: fmt.Sprintf("if the damaged upload was in parts, they are left and billed: remove temporary objects with \"gcloud storage rm 'gs://%s/%s%s-*'\", and let a rule of the bucket abort multipart uploads", bucket, parts.TemporaryDir, id)})
}

// abandon removes the parts of a saved upload from the service.
func (j *job) abandon(ctx context.Context, token *state.Token) error {
	if token.Parts == nil || state.Adopt(j.u.client, token) != nil {
		return nil
	}
	return j.partsOf(token).abandon(ctx, j, token)
}

// savedIn reports whether a store has an upload with that ID, which may be damaged.
// It returns false if the store cannot be read.
func savedIn(ctx context.Context, store state.Store, id string) bool {
	_, err := store.Load(ctx, id)
	return err == nil || errors.Is(err, state.ErrCorruptToken) || errors.Is(err, state.ErrTokenVersion)
}

// uploadSaved resumes a saved upload.
func (j *job) uploadSaved(ctx context.Context, id string) error {
	ctx = j.storeContext(ctx)
	id, err := j.findSaved(ctx, id)
	if err != nil {
		return err
	}
	journal, token, damaged, err := j.openJournal(ctx, id, nil)
	if err != nil {
		return err
	}
	defer journal.close()
	switch {
	case damaged != nil:
		return damaged
	case token == nil:
		return fmt.Errorf("%w: %s", state.ErrNoToken, id)
	}
	j.want = token.Spec
	j.identify(id, j.want)
	j.keep(journal, token, token.SourcePath, token.SourceIdentity)
	if token.Endpoint != j.u.client.Endpoint() {
		return fmt.Errorf("upload %s was started at %s: %w", id, token.Endpoint, session.ErrURIMismatch)
	}
	if token.Parts != nil && token.Parts.Over {
		return j.resumeRemoval(ctx, token, journal)
	}
	if token.SourceIdentity != "" {
		return fmt.Errorf("%w: the source of upload %s is %q, which has no path: only the program that began it can resume it, with ReaderAt", ErrSourceNeeded, id, token.SourceIdentity)
	}
	if err := j.open(token.SourcePath); err != nil {
		return err
	}
	defer j.closeSource()
	return j.resume(ctx, token)
}

// openJournal opens the journal of a saved upload. The requests of j then need its
// lease. waiting, if it is not nil, is called before each wait for the lease.
func (j *job) openJournal(ctx context.Context, id string, waiting func(context.Context)) (*journal, *state.Token, error, error) {
	journal, token, damaged, err := openJournal(ctx, j.u.opts.Store, id, func(held *state.HeldError) {
		if waiting != nil {
			waiting(ctx)
		}
		j.events.post(Event{Kind: Held, Delay: held.Left, Cause: held.Holder(), Err: held})
	})
	if err == nil {
		j.uplink.needLease(journal.lease)
		if j.interrupt != nil {
			journal.released = j.u.running.add(id, j.interrupt)
		}
		journal.ctx = j.u.storeContext(journal.ctx, j.events, nothingAtStake)
		journal.background = j.u.storeContext(journal.ctx, nil, nothingAtStake)
	}
	return journal, token, damaged, err
}

// keep makes the journal save the upload. token is the saved Token, or nil if there
// is none. path and identity are as in uploadSavable.
func (j *job) keep(journal *journal, token *state.Token, path, identity string) {
	journal.events = j.events
	if token != nil {
		journal.adopt(token)
	}
	j.journal = journal
	j.result.saved.Store(journal)
	journal.draft.Endpoint, journal.draft.Spec, journal.draft.SourcePath = j.u.client.Endpoint(), withoutSecret(j.spec), path
	journal.draft.SourceIdentity, journal.draft.SourceVersion = identity, j.u.expect.version
}

// setSpec sets the options of the object, for this upload and for its Token.
func (j *job) setSpec(spec Spec) {
	j.spec = spec
	j.result.label.set(func(n *names) { n.spec = spec })
	if j.journal != nil {
		j.journal.draft.Spec = withoutSecret(spec)
	}
}

// resume continues a saved session. If it cannot be resumed, resume starts over and
// reports the reason.
func (j *job) resume(ctx context.Context, token *state.Token) error {
	saved, err := j.unlock(token.Spec, j.want.EncryptionKey)
	if err != nil {
		return err
	}
	j.want.EncryptionKey = saved.EncryptionKey
	if why := j.useless(token); why != "" {
		return j.startOver(ctx, why, session.URI{})
	}
	if err := j.settle(ctx, j.file); err != nil {
		return err
	}
	if token.Parts != nil {
		return j.partsOf(token).resume(ctx, j, token, saved)
	}
	// The options that were not given are those of the first run.
	saved.NoClobber = saved.NoClobber || j.spec.NoClobber
	j.setSpec(saved)
	j.compress(saved.Gzip)
	token = withoutUnsent(token)
	if err := j.sameSource(ctx, token); err != nil {
		if !errors.Is(err, session.ErrSourceChanged) {
			return err
		}
		if !j.u.opts.RestartChanged {
			return sourceError(err)
		}
		return j.startOver(ctx, err.Error(), token.URI)
	}
	j.journal.adopt(token) // without the checksums of unsent bytes
	j.source.Adopt(savedSource(token))
	t := j.newTransfer(j.source, j.journal.recordFile(j.file, j.source))
	size := j.source.Total()
	t.pos.size.Store(size)
	r := j.newRun(t, adopted(j.journal.whole.state(), size))
	r.uri, r.opened = token.URI, token.Created
	t.pos.committed.Store(token.Committed)
	r.resume = j.resumeFrom
	return j.upload(ctx, t, r, session.Action{Step: session.Query})
}

// resumeFrom continues at the committed offset. The checksum of the bytes before it
// is computed from a checkpoint and a short part of the source, which is read again.
func (j *job) resumeFrom(ctx context.Context, offset int64) error {
	if err := j.source.Seek(ctx, offset); err != nil {
		return j.requests.sourceFailed(ctx, err)
	}
	j.requests.pos.sent.Store(offset)
	j.result.update(func(r *Result) { r.Resumed, r.ResumedFrom = true, offset })
	j.events.post(Event{Kind: Resumed})
	return nil
}

// startOver deletes the saved upload, reports why, cancels its session uri if that is
// not zero, and uploads from byte 0, with the options of this call. After a crash in
// between, the session expires: if it were canceled first, the next call would find a
// saved upload whose session another client seems to have canceled.
func (j *job) startOver(ctx context.Context, why string, uri session.URI) error {
	j.setSpec(j.want)
	j.events.post(Event{Kind: Discarded, Cause: why})
	if err := j.journal.discard(); err != nil {
		return err
	}
	j.wire().drop(ctx, uri)
	return j.fresh(ctx)
}

// useless returns the reason why a saved session cannot be resumed, or "" if it can
// be.
func (j *job) useless(token *state.Token) string {
	if err := state.Adopt(j.u.client, token); err != nil {
		return err.Error()
	}
	if token.Endpoint != j.u.client.Endpoint() {
		return "the earlier upload was to another endpoint"
	}
	return ""
}

// discardCopy starts over with a file that is not the one with which the saved
// session began. Only the server's checksum showed that.
func (j *job) discardCopy(ctx context.Context, why error) error {
	j.source.Restart()
	j.unresume()
	return j.startOver(ctx, sourceError(why).Error(), session.URI{})
}

// unresume resets the progress of a saved session.
func (j *job) unresume() {
	j.requests.pos.sent.Store(0)
	j.requests.pos.committed.Store(0)
	j.result.update(func(r *Result) { r.Resumed, r.ResumedFrom = false, 0 })
}
