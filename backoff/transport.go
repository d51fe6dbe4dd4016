package backoff

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// A Transport is an http.RoundTripper that retries requests to any Google API:
//
//	client := &http.Client{Transport: &backoff.Transport{}}
//
// It retries a failure that [Status] or [Network] calls Transient if the
// request is [Idempotent] and can be sent again. A request can be sent again if
// it has no body, or has GetBody, which http.NewRequest sets for a body in
// memory. Every other request is made once.
//
// When it stops, it returns the last reply, with its body, or the last error.
// After a retry the error is an *[Error]. A Transport does not retry if reading
// the body of a successful reply fails.
//
// The request's context and http.Client.Timeout limit all attempts and waits
// together. To limit each attempt, set ResponseHeaderTimeout of the Base. A
// transport that adds credentials, such as that of golang.org/x/oauth2, must be
// the Base, so that each attempt has a valid token.
//
// The zero value is ready to use. A Transport is safe for concurrent use. Its
// fields must not change after the first request. Use one Transport for each
// endpoint, because its requests share a [Breaker].
type Transport struct {
	// Base makes the requests. nil means http.DefaultTransport.
	Base http.RoundTripper

	// Policy computes how long to wait.
	Policy Policy

	// Budget decides when to stop. Each request uses a copy. The zero value
	// allows 5 retries.
	Budget Budget

	// Breaker is shared by all requests to the endpoint. nil means one of this
	// Transport. [NoBreaker] means none.
	Breaker *Breaker

	// Rate, if not nil, returns the Rate that throttles a request, such as that of its
	// bucket, or nil. It throttles every attempt, even of a request that is never
	// retried. Requests wait in a queue. After a random time between half a minute and
	// a minute, a request is made even if the Rate does not permit it yet. Rate must be
	// safe for concurrent use.
	Rate func(*http.Request) *Rate

	// Idempotent reports whether a request may be made twice. nil means the
	// function [Idempotent].
	Idempotent func(*http.Request) bool

	// Observe, if not nil, is called after each attempt, see [Options].
	Observe func(*http.Request, Attempt)

	// Counters, if not nil, counts attempts, failures and waits.
	Counters *Counters

	own Breaker
}

var _ http.RoundTripper = (*Transport)(nil)

// RoundTrip makes the request and retries it if necessary. It does not change
// req, and closes its body.
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
	if t.Rate != nil {
		base = pacedTransport{base, t.Rate(req)}
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
	opts := Options{Budget: t.Budget, Breaker: t.Breaker, Counters: t.Counters}
	if opts.Breaker == nil {
		opts.Breaker = &t.own
	}
	if t.Observe != nil {
		opts.Observe = func(a Attempt) { t.Observe(req, a) }
	}
	return newOperation(t.Policy, &opts)
}

func hasBody(req *http.Request) bool { return req.Body != nil && req.Body != http.NoBody }

// replayable reports whether the request can be sent a second time.
func replayable(req *http.Request) bool { return !hasBody(req) || req.GetBody != nil }

// again returns a copy of req with a new body.
func again(req *http.Request) (*http.Request, error) {
	try := req.Clone(req.Context())
	if hasBody(req) {
		body, err := req.GetBody()
		if err != nil {
			return nil, fmt.Errorf("backoff: get request body for retry: %w", err)
		}
		try.Body = body
	}
	return try, nil
}

// transient returns a *StatusError if the reply is a transient failure, and nil
// otherwise. For a failure it reads up to 64 KiB of the body into memory, so
// that the connection is free during the wait. The caller can still read the
// body if there is no retry.
func transient(resp *http.Response) error {
	// The reason in the body can make a 403 transient and a 429 permanent.
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

// failing is a reader that returns err, or io.EOF if err is nil.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}
