package upload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"

	"gcsup/backoff"
	"gcsup/chunk"
	"gcsup/session"
)

// Objects looks at objects.
type Objects interface {
	// Stat asks once for the metadata of the object that spec names. It does
	// not retry. [*session.Client] implements it.
	Stat(ctx context.Context, spec Spec) session.Reply
}

// Uploader uploads files and streams. It is safe for concurrent use, and uploads
// that share one also share a budget of retries ([backoff.Throttle]).
type Uploader struct {
	client   *session.Client
	opts     Options
	throttle *backoff.Throttle
}

// New returns an Uploader that sends its requests with hc, which adds the
// credentials. nil options are good.
func New(hc *http.Client, opts *Options) (*Uploader, error) {
	if opts == nil {
		opts = &Options{}
	}
	o, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("upload options: %w", err)
	}
	client, err := session.NewClient(hc, o.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("upload options: %w", err)
	}
	if o.Objects == nil {
		o.Objects = client
	}
	return &Uploader{client: client, opts: o, throttle: &backoff.Throttle{}}, nil
}

// File uploads the file at path. If an upload of the same file to the same
// destination was interrupted, it is resumed; see [Options.Store].
//
// Besides the sentinels of package session, errors wrap [chunk.ErrRead] or a
// *fs.PathError when the file, or the store, cannot be used.
func (u *Uploader) File(ctx context.Context, path string, spec Spec) (*Result, error) {
	t := u.transfer(spec)
	err := t.uploadFile(ctx, path)
	return t.result(err)
}

// Reader uploads what r gives until EOF. It cannot be resumed by another
// process, because r cannot be read again. When r fails, the upload fails with
// [chunk.ErrRead], and no object comes into being.
func (u *Uploader) Reader(ctx context.Context, r io.Reader, spec Spec) (*Result, error) {
	t := u.transfer(spec)
	err := t.uploadStream(ctx, r)
	return t.result(err)
}

// Resume goes on with the saved upload of that ID, see [Result.ID]. The error
// wraps [session.ErrNoToken] if there is none.
func (u *Uploader) Resume(ctx context.Context, id string) (*Result, error) {
	t := u.transfer(Spec{})
	err := t.uploadSaved(ctx, id)
	return t.result(err)
}

// Cancel ends the saved upload of that ID: the service drops its bytes, and the
// store forgets it. It is for uploads that will not be resumed; those that are
// just left alone cost nothing and expire after a week.
func (u *Uploader) Cancel(ctx context.Context, id string) error {
	if u.opts.Store == nil {
		return fmt.Errorf("cancel: %w: there is no store", session.ErrNoToken)
	}
	unlock, err := u.opts.Store.Lock(ctx, id)
	if err != nil {
		return fmt.Errorf("cancel: %w", err)
	}
	defer unlock()
	token, err := u.opts.Store.Load(ctx, id)
	if errors.Is(err, session.ErrDamaged) {
		return nil // set aside: there is nothing to cancel with
	}
	if err != nil {
		return fmt.Errorf("cancel: %w", err)
	}
	t := u.transfer(token.Spec)
	if err := u.client.Adopt(token); err != nil {
		if token.Endpoint == u.client.Endpoint() {
			// Nothing can be sent to such a session, so there is nothing to keep.
			return errors.Join(fmt.Errorf("cancel: %w", err), u.opts.Store.Delete(ctx, id))
		}
		return fmt.Errorf("cancel: upload %s was begun at %s: %w", id, token.Endpoint, err)
	}
	for refreshed := false; ; {
		r := t.exchange(ctx, func(ctx context.Context, _ *watch) session.Reply {
			return u.client.Cancel(ctx, token.URI)
		})
		switch {
		case r.Cancelled():
			return u.opts.Store.Delete(ctx, id)
		case r.Status == 200 || r.Status == 201:
			t.event(Event{Kind: Warning, Cause: "the upload was finished already; the object is at " + token.Spec.URL()})
			return u.opts.Store.Delete(ctx, id)
		case ctx.Err() != nil:
			return fmt.Errorf("cancel: %w", context.Cause(ctx))
		case r.Status == http.StatusUnauthorized && !refreshed:
			refreshed = true
			continue
		case !r.Retryable():
			return r.Refusal()
		}
		if err := t.backOff(ctx, session.Action{Err: &session.Error{Op: r.Op, Status: r.Status, Err: r.Err}, RetryAfter: r.RetryAfter}); err != nil {
			return fmt.Errorf("cancel: %w", err)
		}
	}
}

// ID is the identifier of the upload of a file to a destination. The same file,
// destination and endpoint have the same one, in every process.
func (u *Uploader) ID(path string, spec Spec) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real // so that the same file has the same upload
	}
	h := sha256.New()
	for _, field := range []string{u.client.Endpoint(), spec.Bucket, spec.Object, abs} {
		fmt.Fprintf(h, "%d:%s", len(field), field)
	}
	return hex.EncodeToString(h.Sum(nil)[:10]), nil
}

func (u *Uploader) transfer(spec Spec) *transfer {
	return &transfer{
		u:      u,
		spec:   spec,
		bound:  newBound(u.opts.ChunkSize),
		budget: backoff.Budget{For: u.opts.RetryFor},
		began:  time.Now(),
		res:    Result{Spec: spec, Size: -1},
	}
}

// sourceError names what is wrong with a source in one way, whichever layer
// noticed it.
func sourceError(err error) error {
	if errors.Is(err, chunk.ErrChanged) {
		return fmt.Errorf("%w (nothing more of it was sent)", err)
	}
	return err
}
