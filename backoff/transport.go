package backoff

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// A Transport is an http.RoundTripper that tries requests again, for any Google
// API:
//
//	client := &http.Client{Transport: &backoff.Transport{}}
//
// It retries what [Status] and [Network] call transient, for a request that is
// [Idempotent] and can be sent again: without a body, or with GetBody, which
// http.NewRequest sets for a body in memory. Every other request is made once.
//
// When it stops it returns what the last attempt got: a reply as such, with its
// body, or an error, which after a retry is an *[Error]. A failure while the
// caller reads the body of a good reply is the caller's.
//
// The request's context, and with it http.Client.Timeout, bounds all attempts
// and waits together. For a bound on each attempt set ResponseHeaderTimeout of
// the Base. A transport that adds credentials, such as that of
// golang.org/x/oauth2, belongs into Base, so that each attempt has a token that
// is still valid.
//
// The zero value is ready to use. A Transport is safe for concurrent use; its
// fields must not change then. Use one for each endpoint, as its requests share
// a [Gate].
type Transport struct {
	// Base makes the requests. nil is http.DefaultTransport.
	Base http.RoundTripper

	// Policy says how long to wait. The zero value is CloudStorage.
	Policy Policy

	// Budget says when to stop; each request has one of its own. The zero
	// value allows 5 retries.
	Budget Budget

	// Gate is what all requests to the endpoint share. nil is one that belongs
	// to this Transport. [NoGate] switches it off.
	Gate *Gate

	// Idempotent says which requests may be made twice. nil is the function
	// [Idempotent].
	Idempotent func(*http.Request) bool

	// Observe, if not nil, is told of each attempt, see [Options].
	Observe func(*http.Request, Attempt)

	// Counters, if not nil, counts what happens.
	Counters *Counters

	own Gate
}

var _ http.RoundTripper = (*Transport)(nil)

// RoundTrip makes the request, again if need be. It does not change req, and
// closes its body as http.RoundTripper demands.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := t.Policy.Validate(); err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	if !replayable(req) || !t.idempotent(req) {
		return base.RoundTrip(req)
	}

	ctx := req.Context()
	operation := t.operation(req)
	defer operation.waiter.Close()
	for try := req; ; {
		resp, err := base.RoundTrip(try)
		failure := err
		if err == nil {
			failure = transient(resp)
		}
		if failure == nil {
			operation.succeeded()
			return resp, nil
		}
		if stop := operation.failed(ctx, failure); stop != nil {
			switch {
			case resp != nil && ctx.Err() == nil:
				return resp, nil
			case resp != nil:
				resp.Body.Close()
			case operation.number == 1:
				return nil, err
			}
			return nil, stop
		}
		if resp != nil {
			resp.Body.Close()
		}
		if try, err = again(req); err != nil {
			return nil, err
		}
	}
}

func (t *Transport) idempotent(req *http.Request) bool {
	if t.Idempotent != nil {
		return t.Idempotent(req)
	}
	return Idempotent(req)
}

func (t *Transport) operation(req *http.Request) *operation {
	opts := Options{Budget: t.Budget, Gate: t.Gate, Counters: t.Counters}
	if opts.Gate == nil {
		opts.Gate = &t.own
	}
	if t.Observe != nil {
		opts.Observe = func(a Attempt) { t.Observe(req, a) }
	}
	return newOperation(t.Policy, &opts)
}

func hasBody(req *http.Request) bool { return req.Body != nil && req.Body != http.NoBody }

// replayable reports whether the request can be sent a second time.
func replayable(req *http.Request) bool { return !hasBody(req) || req.GetBody != nil }

// again returns a copy of req with a fresh body.
func again(req *http.Request) (*http.Request, error) {
	try := req.Clone(req.Context())
	if hasBody(req) {
		body, err := req.GetBody()
		if err != nil {
			return nil, fmt.Errorf("backoff: getting the request body again: %w", err)
		}
		try.Body = body
	}
	return try, nil
}

// transient returns a *StatusError if the reply is worth another try, and else
// nil. In the first case it reads up to 64 KiB of the body into memory, so that
// the connection is not held during the wait, and the body is still there for
// the caller if there is no other try.
func transient(resp *http.Response) error {
	// The reason in the body of a 403 can make it transient, that of a 429
	// permanent.
	if Status(resp.StatusCode, "") != Transient && resp.StatusCode != http.StatusForbidden {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if len(body) == maxErrorBody {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(body), resp.Body), resp.Body}
	} else {
		resp.Body.Close()
		resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), failing{err}))
	}
	status := statusError(resp, body)
	if Status(status.Code, status.Reason) != Transient {
		return nil
	}
	return status
}

// failing is a reader that returns err, or io.EOF if that is nil.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}
