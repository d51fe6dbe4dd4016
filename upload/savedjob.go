package upload

import (
	"context"
	"fmt"

	"gcsup/session/state"
	"gcsup/upload/internal/parts"
	"gcsup/upload/internal/saved"
	"gcsup/upload/internal/source"
)

// uploadSavable uploads the open source, with its saved session if there is one. path
// is absolute, or "" for a source with an identity that the caller gave.
func (j *job) uploadSavable(ctx context.Context, id, path, identity string) error {
	ctx = j.storeContext(ctx)
	store, want := j.u.opts.Store, j.spec
	j.want = want.Resolved()
	j.identify(id, j.want)
	if j.small() && !saved.Exists(ctx, store, id) {
		return j.newUpload().run(ctx)
	}
	token, damaged, err := j.openJournal(ctx, state.Token{ID: id, SourcePath: path, SourceIdentity: identity}, j.waitForHolder)
	if err != nil {
		return err
	}
	defer j.journal.Close()
	if token != nil {
		f, err := j.resuming(token, &want)
		if err != nil {
			return err
		}
		return f.run(ctx)
	}
	f := j.newUpload()
	f.given, f.know.made = want, unknown
	if damaged != nil {
		f.damaged = true
		j.events.post(Event{Kind: Discarded, Cause: damaged.Error()})
		j.warnOfLostParts(id, want.Bucket)
	}
	return f.run(ctx)
}

// warnOfLostParts warns of what a damaged upload may have stored in parts. Its Token does not
// tell.
func (j *job) warnOfLostParts(id, bucket string) {
	if j.u.opts.Parallel == nil {
		return // this Uploader sends no file in parts
	}
	j.events.post(Event{Kind: Warning, Cause: fmt.Sprintf("if the damaged upload was in parts, they are left and billed: remove temporary objects with \"gcloud storage rm 'gs://%s/%s%s-*'\", or in a bucket with hierarchical namespace or managed folders \"gcloud storage rm 'gs://%s/**%s%s-*'\", and let a rule of the bucket abort multipart uploads",
		bucket, parts.TemporaryDir, id, bucket, parts.TemporaryName, id)})
}

// uploadSaved resumes a saved upload.
func (j *job) uploadSaved(ctx context.Context, id string) error {
	ctx = j.storeContext(ctx)
	id, err := j.u.findSaved(ctx, id)
	if err != nil {
		return err
	}
	j.identify(id, j.spec)
	token, damaged, err := j.openJournal(ctx, state.Token{ID: id}, nil)
	if err != nil {
		return err
	}
	defer j.journal.Close()
	switch {
	case damaged != nil:
		return damaged
	case token == nil:
		return fmt.Errorf("%w: %s", state.ErrNoToken, id)
	}
	j.want = token.Spec
	j.identify(id, j.want)
	if err := j.u.foreign(id, token.Endpoint); err != nil {
		return err
	}
	if token.Parts != nil && token.Parts.Over {
		return j.resumeRemoval(ctx, token)
	}
	if token.Spool != nil {
		return j.resumeSpooled(ctx, token)
	}
	if token.SourceIdentity != "" {
		return fmt.Errorf("%w: the source of upload %s is %q, which has no path: only the program that began it can resume it, with ReaderAt", ErrSourceNeeded, id, token.SourceIdentity)
	}
	if err := j.open(token.SourcePath, ""); err != nil {
		return err
	}
	defer j.closeSource()
	f, err := j.resuming(token, nil)
	if err == nil {
		err = f.run(ctx)
	}
	return j.thenRemove(ctx, err)
}

// openJournal opens the journal of a saved upload. The requests of j then need its
// lease. waiting, if it is not nil, is called before each wait for the lease. The caller must
// close the journal.
func (j *job) openJournal(ctx context.Context, draft state.Token, waiting func(context.Context)) (token *state.Token, damaged, err error) {
	draft.Endpoint, draft.SourceVersion = j.u.client.Endpoint(), j.u.version
	journal, token, damaged, err := saved.Open(ctx, saved.Call{
		Store: j.u.opts.Store, Running: j.u.running, Interrupt: j.interrupt,
		Waiting: func(held *state.HeldError) {
			if waiting != nil {
				waiting(ctx)
			}
			j.events.post(Event{Kind: Held, Delay: held.Left, Cause: held.Holder(), Err: held})
		},
		Stale: func(err error) {
			j.events.post(Event{Kind: Warning, Cause: "the upload continues, and its state cannot be saved: " + err.Error(), Err: err})
		},
		Last:       func(ctx context.Context) context.Context { return j.u.storeContext(ctx, j.events, nothingAtStake) },
		Background: func(ctx context.Context) context.Context { return j.u.storeContext(ctx, nil, nothingAtStake) },
	}, draft)
	if err != nil {
		return nil, nil, err
	}
	journal.SetSpec(j.spec)
	j.journal = journal
	j.result.saved.Store(journal)
	j.uplink.Permit = journal.Lease()
	return token, damaged, nil
}

// setSpec sets the options of the object, for this upload and for its Token.
func (j *job) setSpec(spec Spec) {
	j.spec = spec
	j.result.label.set(func(n *names) { n.spec = spec })
	j.journal.SetSpec(spec)
}

// sameSource checks that the file is the one with which the session began.
func (j *job) sameSource(ctx context.Context, token *state.Token) error {
	doubt, err := j.journal.SameSource(token, j.file.Total(), j.file.Since)
	switch {
	case err != nil || doubt == saved.NoDoubt:
		return err
	case token.Parts != nil:
		return j.compareParts(ctx, token)
	case doubt == saved.AllBytes:
		return j.source.CompareAll(ctx, savedSource(token))
	}
	return j.source.CompareLast(ctx, savedSource(token))
}

// savedSource returns what a Token records of the source.
func savedSource(t *state.Token) source.Saved {
	return source.Saved{Checkpoints: t.Checkpoints, Sent: t.HighWater, Compression: (*source.Compression)(t.Gzip)}
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
