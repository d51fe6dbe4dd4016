package backoff

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
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
// temporary, HTTP/2 connections that the server gave up, TLS records that were
// damaged on the way, a machine without a free file descriptor or memory, and a
// CONNECT proxy that answers with a status that [Status] calls transient.
//
// Permanent are: nil, a cancelled context, certificates that are not trusted,
// malformed and unsupported URLs, a host that does not exist, a proxy that asks
// for a password, and whatever is not known to be transient.
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
	if code := ProxyStatus(err); code != 0 {
		return Status(code, "")
	}
	for _, target := range broken {
		if errors.Is(err, target) {
			return Transient
		}
	}
	if timedOut(err) || damagedRecord(err) || http2Stream(err) || knownText(err.Error()) {
		return Transient
	}
	return Permanent
}

// broken are the errors of a connection that is closed, and those of the system
// in brokenErrno. net.Pipe returns io.ErrClosedPipe.
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

// damagedRecord reports whether a TLS record arrived damaged. That can happen at
// any time on a bad link. Alerts that reject a certificate, a name or a version
// are not among them: a new connection gets the same alert.
func damagedRecord(err error) bool {
	if header, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		// A server that does not speak TLS is told by its first record.
		return strings.HasPrefix(header.Msg, "oversized record") || strings.HasPrefix(header.Msg, "received record with version")
	}
	// The type of an alert is not exported; only its text is known
	// (https://github.com/golang/go/blob/master/src/crypto/tls/alert.go).
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "local error" || op.Op == "remote error") && slices.Contains(damageAlerts, op.Err.Error())
}

var damageAlerts = []string{
	"tls: bad record MAC",
	"tls: decryption failed",
	"tls: error decoding message",
	"tls: error decrypting message",
	"tls: internal error",
	"tls: record overflow",
	"tls: unexpected message",
}

// A ProxyError is the refusal of a proxy to connect to the server.
type ProxyError struct {
	Proxy  string // scheme and host of the proxy
	Code   int    // HTTP status code of its reply to CONNECT
	Status string // code and reason phrase
}

// Error names the proxy and its reply.
func (e *ProxyError) Error() string {
	return fmt.Sprintf("proxy %s answered CONNECT with %s", e.Proxy, e.Status)
}

// CheckProxy returns nil if a proxy's reply to CONNECT is 200, and else a
// *[ProxyError]. It is for http.Transport.OnProxyConnectResponse. Without it
// net/http keeps only the reason phrase of the reply.
func CheckProxy(_ context.Context, proxy *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	return &ProxyError{Proxy: proxy.Scheme + "://" + proxy.Host, Code: resp.StatusCode, Status: resp.Status}
}

// ProxyStatus returns the status code with which a proxy refused to connect, or
// 0 if err is something else. It knows a [ProxyError], and the text that
// net/http makes of a reply with a standard reason phrase.
func ProxyStatus(err error) int {
	if proxy, ok := errors.AsType[*ProxyError](err); ok {
		return proxy.Code
	}
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	for code := http.StatusBadRequest; err != nil && code <= http.StatusNetworkAuthenticationRequired; code++ {
		if err.Error() == http.StatusText(code) {
			return code
		}
	}
	return 0
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
