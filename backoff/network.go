package backoff

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
)

// Network classifies the error of a request that got no reply, or not all of
// one.
//
// Transient are: connections that were reset, refused, closed or cut short
// (io.EOF, io.ErrUnexpectedEOF and a reply cut in its header among them), hosts and networks that cannot
// be reached, timeouts of every kind, DNS failures that the resolver calls
// temporary, and HTTP/2 connections that the server gave up.
//
// Permanent are: nil, a cancelled context, certificates that are not trusted,
// malformed and unsupported URLs, a host that does not exist, and whatever is
// not known to be transient.
//
// Two things a caller has to look at first, because the error cannot tell. A
// context.DeadlineExceeded is Transient, as it is what the timeout of one
// attempt looks like: if the deadline was that of the whole operation, stop.
// And an error from reading the request body is not the network's, though
// net/http returns it in the same way: classify only what is left.
//
// A host that does not exist is Transient on macOS and Windows: their
// resolvers say the same while the machine is offline, so there it may be a
// laptop that is being carried from one network to the next.
func Network(err error) Verdict {
	if err == nil || errors.Is(err, context.Canceled) {
		return Permanent
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return resolver(dns, runtime.GOOS)
	}
	for _, target := range broken {
		if errors.Is(err, target) {
			return Transient
		}
	}
	if timedOut(err) || http2Stream(err) || knownText(err.Error()) {
		return Transient
	}
	return Permanent
}

// broken are the errors, beside the system's in brokenErrno, that say that a
// connection is no more. io.ErrClosedPipe is what net.Pipe says.
var broken = append([]error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed}, brokenErrno...)

// resolver classifies a DNS failure on the operating system goos.
func resolver(err *net.DNSError, goos string) Verdict {
	notFoundWhileOffline := goos == "darwin" || goos == "windows"
	if err.IsTimeout || err.IsTemporary || err.IsNotFound && notFoundWhileOffline {
		return Transient
	}
	return Permanent
}

// timedOut reports whether any error that err wraps is a timeout. errors.As
// would stop at the first that has a Timeout method, and a *url.Error has one
// that looks just one level deep.
func timedOut(err error) bool {
	if t, ok := err.(interface{ Timeout() bool }); ok && t.Timeout() {
		return true
	}
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		inner := err.Unwrap()
		return inner != nil && timedOut(inner)
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(err.Unwrap(), timedOut)
	}
	return false
}

// http2Stream reports whether the server reset the HTTP/2 stream with a code
// that blames neither the request nor the caller
// (https://www.rfc-editor.org/rfc/rfc9113#name-error-codes).
func http2Stream(err error) bool {
	const noError, internalError, refusedStream, enhanceYourCalm = 0x0, 0x2, 0x7, 0xb
	// The type in net/http is not exported, but fills any struct that has
	// the fields of golang.org/x/net/http2.StreamError.
	var stream streamError
	if !errors.As(err, &stream) {
		return false
	}
	switch stream.Code {
	case noError, internalError, refusedStream, enhanceYourCalm:
		return true
	}
	return false
}

type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string { return "http2: stream error" }

// texts are the failures that net/http returns as plain text or with a type
// that it neither exports nor lets errors.As fill
// (https://github.com/golang/go/blob/master/src/net/http/transport.go and
// h2_bundle.go beside it).
var texts = []string{
	"http: server closed idle connection",
	// A reply that was cut in its header reads as a malformed one. A server
	// that does not speak HTTP looks the same, and costs one budget.
	"net/http: HTTP/1.x transport connection broken",
	"http2: client connection lost",
	"http2: server sent GOAWAY and closed the connection",
	"http2: Transport received GOAWAY from server",
	"http2: Transport received Server's graceful shutdown GOAWAY",
}

func knownText(text string) bool {
	return slices.ContainsFunc(texts, func(known string) bool { return strings.Contains(text, known) })
}
