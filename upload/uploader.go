package upload

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"

	"gcsup/chunk"
	"gcsup/session"
)

// Objects looks at objects.
//
// An implementation may have a method WithHeader(http.Header) Objects, which returns
// one that adds the headers to its requests. [CallOptions].Header needs it.
type Objects interface {
	// Stat asks once for the metadata of the object that spec names. It does
	// not retry. [*session.Client] implements it.
	Stat(ctx context.Context, spec Spec) session.Reply
}

// withHeader returns o with headers for each request, if it can have some.
func withHeader(o Objects, header http.Header) Objects {
	if h, ok := o.(interface{ WithHeader(http.Header) Objects }); ok {
		return h.WithHeader(header)
	}
	return o
}

// Uploader uploads files and streams. It is safe for concurrent use, and uploads
// that share one also share a gate for their retries ([Options.Gate]).
type Uploader struct {
	client  *session.Client
	opts    Options
	limiter *sharedLimiter // nil if there is no limit
	memory  *chunk.Memory  // of streams
	expect  expectation    // of each source, see With
	invalid error          // of the options of With
	parts   *partsShared

	compressor compressor
}

// New returns an Uploader that sends its requests with hc, which adds the
// credentials. See [NewTransport] for its transport. A nil hc means
// http.DefaultClient, without credentials. A nil opts uses the defaults.
//
// The Uploader uses a copy of hc without its Timeout, which is one for the whole
// request and would end each that takes longer. [Options.StallTimeout] bounds how
// long a request may make no progress, and the context of a call how long the
// call may take.
func New(hc *http.Client, opts *Options) (*Uploader, error) {
	if opts == nil {
		opts = &Options{}
	}
	o, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("upload options: %w", err)
	}
	client, err := session.NewClient(untimed(hc), o.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("upload options: %w", err)
	}
	if o.Objects == nil {
		o.Objects = client
	}
	return &Uploader{client: client, opts: o, limiter: newSharedLimiter(o.Limiter), memory: chunk.NewMemory(o.Memory), parts: &partsShared{}}, nil
}

// File uploads the file at path. If an upload of the same file to the same
// destination was interrupted, it is resumed; see [Options.Store]. If another process
// holds the lease of that upload and may have died, File waits, and uses the object if
// that process makes it meanwhile.
//
// Once ctx is done, File returns within seconds, even if the file cannot be read
// any more.
//
// Besides the sentinels of package session, errors wrap [chunk.ErrRead] or a
// *fs.PathError when the file, or the store, cannot be used.
func (u *Uploader) File(ctx context.Context, path string, spec Spec) (*Result, error) {
	j := u.newJob(ctx, spec, u.newBudget())
	return j.do(ctx, func(ctx context.Context) error { return j.uploadFile(ctx, path) })
}

// Reader uploads what r returns until EOF. No other call can resume it, because r
// cannot be read again. If r fails, the upload fails with [chunk.ErrRead], and
// there is no object.
//
// A stream of at most 256 KiB is sent in one request. Any other stream gets a
// session.
//
// Reader reads nothing before the preconditions are checked. Then it reads 256 KiB
// and one byte, to know whether the stream is longer (with Gzip in spec, as much as
// compresses to that), and nothing more before the session is open. It reads
// nothing after it has returned: a caller that can seek may then go back and try
// again. An upload that fails, or whose ctx ends, therefore waits
// for a Read that is under way. If r has a method SetReadDeadline that works (a
// [net.Conn], or one end of an [os.Pipe]), Reader ends the Read with it and
// clears the deadline. Otherwise the caller must make the Read return, usually
// by closing r.
func (u *Uploader) Reader(ctx context.Context, r io.Reader, spec Spec) (*Result, error) {
	j := u.newJob(ctx, spec, u.newBudget())
	return j.finish(ctx, j.uploadReader(ctx, r))
}

// Resume continues the saved upload with an ID, see [Result.ID]. The error wraps
// [session.ErrNoToken] if there is none.
func (u *Uploader) Resume(ctx context.Context, id string) (*Result, error) {
	j := u.newJob(ctx, Spec{}, u.newBudget())
	return j.do(ctx, func(ctx context.Context) error { return j.uploadSaved(ctx, id) })
}

// ID returns the identifier of the upload of a file to a destination. The same
// file, destination and endpoint have the same ID in every process.
func (u *Uploader) ID(path string, spec Spec) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real // so that the same file has the same upload
	}
	return u.hashID(spec, abs), nil
}

// newBudget returns the budget of one upload that shares it with no other.
func (u *Uploader) newBudget() *budget { return &budget{retryFor: u.opts.RetryFor, began: time.Now()} }
