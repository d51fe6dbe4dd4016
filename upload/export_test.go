package upload

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"gcsup/backoff"
	"gcsup/fakegcs"
	"gcsup/internal/cloudtest"
	"gcsup/upload/internal/atrisk"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/netconn"
)

// Unexported names for the tests of package upload_test.

// ExchangeOf identifies the exchange of a request, from the context of the request or of the
// Exchange.
func ExchangeOf(ctx context.Context) any { return ctx.Value(engine.ExchangeKey{}) }

// SetGzipLevel makes u compress like another version of the program. 0 changes
// nothing.
func SetGzipLevel(u *Uploader, level int) {
	if level != 0 {
		u.compressor.Level = level
	}
}

const KindCount = kindCount

// ServeBucket starts a server with the bucket bkt in the bubble of t. It returns
// a client of it, and a function that stops both.
func ServeBucket(t *testing.T, opts *fakegcs.Options) (srv *fakegcs.Server, client *http.Client, stop func()) {
	t.Helper()
	srv, tr, stop := cloudtest.Serve(t, opts)
	dial := tr.DialContext
	tr.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return netconn.New(c), nil // as NewTransport does
	}
	return srv, &http.Client{Transport: tr}, stop
}

// OneIsSlow makes u know that a single connection is slow.
func OneIsSlow(u *Uploader) { u.link.Measure()(0, time.Hour) }

// ScaledAtRisk returns a bound whose constants are smaller: the bound before the first commit, after some, and
// what a session takes.
func ScaledAtRisk(first, least, session int64) *AtRisk {
	return &AtRisk{bound: atrisk.Bound{Scale: atrisk.Scale{First: first, Least: least, Unknown: session}}}
}

// Amounts returns how many bytes of sessions and of whole requests are at risk, and their bound.
func (a *AtRisk) Amounts() (sessions, whole, bound int64) { return a.bound.Amounts() }

// AutoPartsFrom returns Parts with Auto and other minimum sizes of a file and of its parts, in
// bytes.
func AutoPartsFrom(connections int, minFile, minPart int64) *Parts {
	return &Parts{Auto: true, Connections: connections, MinPart: minPart, minFile: minFile}
}

// AtMost returns a copy of p with another maximum number of parts of a multipart upload of a stream.
func (p *Parts) AtMost(parts int) *Parts {
	other := *p
	other.maxParts = parts
	return &other
}

// Tuned returns a copy of u with a limiter of small files, unless it is nil, and with the memory of a
// batch, unless it is 0.
func Tuned(u *Uploader, small *backoff.Limiter, memory int64) *Uploader {
	own := *u
	own.small, own.batchMemory = cmp.Or(small, u.small), cmp.Or(memory, u.batchMemory)
	return &own
}

// Joined returns a copy of p with another Join.
func (p *Parts) Joined(by JoinBy) *Parts {
	other := *p
	other.Join = by
	return &other
}
