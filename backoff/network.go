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

// Network classifies the error of a request that got no reply or an incomplete
// one.
//
// These errors are Transient:
//
//   - a connection that was reset, refused, closed or cut, which includes
//     io.EOF, io.ErrUnexpectedEOF and an incomplete reply header;
//   - a host or network that cannot be reached;
//   - every timeout;
//   - a DNS failure that the resolver reports as temporary;
//   - an HTTP/2 connection that the server closed;
//   - a TLS record that arrived damaged;
//   - a lack of file descriptors or memory on this machine;
//   - a refusal by a CONNECT proxy with a status that [Status] calls Transient.
//
// Everything else is Permanent: nil, a canceled context, an untrusted
// certificate, a malformed or unsupported URL, a host that does not exist, a
// proxy that requires a password, and every unknown error.
//
// The caller must check two cases first, because the error does not show them. A
// context.DeadlineExceeded is Transient, because it can be the timeout of one
// attempt. If it is the deadline of the whole operation, stop. The second case is an
// error from reading the request body, which net/http returns like an error of the
// network. Do not pass it to Network.
//
// A host that does not exist is Transient on macOS and Windows, because their
// resolvers report the same error while the machine is offline.
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

// broken lists the errors of a closed connection and those in brokenErrno.
// net.Pipe returns io.ErrClosedPipe.
var broken = append([]error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed}, brokenErrno...)

// resolver classifies a DNS failure on the operating system goos.
func resolver(err *net.DNSError, goos string) Verdict {
	notFoundWhileOffline := goos == "darwin" || goos == "windows"
	if err.IsTimeout || err.IsTemporary || err.IsNotFound && notFoundWhileOffline {
		return Transient
	}
	return Permanent
}

// timedOut reports whether err or any error that it wraps is a timeout.
// errors.As would stop at the first error with a Timeout method, and that of
// *url.Error looks only one level deep.
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

// damagedRecord reports whether a TLS record arrived damaged, which can happen
// at any time on a bad link. It reports false for an alert that rejects a
// certificate, a name or a version, because a new connection gets the same
// alert.
func damagedRecord(err error) bool {
	if header, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		// The first record of a server that does not speak TLS has another
		// message.
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

// A ProxyError reports that a proxy refused to connect to the server.
type ProxyError struct {
	Proxy  string // scheme and host of the proxy
	Code   int    // HTTP status code of its reply to CONNECT
	Status string // code and reason phrase
}

// Error returns the proxy and its reply.
func (e *ProxyError) Error() string {
	return fmt.Sprintf("proxy %s answered CONNECT with %s", e.Proxy, e.Status)
}

// CheckProxy returns nil if a proxy's reply to CONNECT is 200, and otherwise a
// *[ProxyError]. It is for http.Transport.OnProxyConnectResponse. Without it,
// net/http keeps only the reason phrase of the reply.
func CheckProxy(_ context.Context, proxy *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	return &ProxyError{Proxy: proxy.Scheme + "://" + proxy.Host, Code: resp.StatusCode, Status: resp.Status}
}

// ProxyStatus returns the status code with which a proxy refused to connect, or
// 0 if err is another error. It recognizes a [ProxyError], and the error that
// net/http makes from a standard reason phrase.
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
// that does not blame the request
// (https://www.rfc-editor.org/rfc/rfc9113#name-error-codes).
func http2Stream(err error) bool {
	const noError, internalError, refusedStream, enhanceYourCalm = 0x0, 0x2, 0x7, 0xb
	// The type in net/http is not exported, but its As method fills any struct
	// with the fields of golang.org/x/net/http2.StreamError.
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

// texts lists the failures that net/http returns as plain text, or with an
// unexported type that errors.As cannot fill
// (https://github.com/golang/go/blob/master/src/net/http/transport.go and
// h2_bundle.go beside it).
var texts = []string{
	"http: server closed idle connection",
	// net/http reports an incomplete reply header as a malformed one. A server
	// that does not speak HTTP gives the same error, and is retried until the
	// budget is spent.
	"net/http: HTTP/1.x transport connection broken",
	"http2: client connection lost",
	"http2: server sent GOAWAY and closed the connection",
	"http2: Transport received GOAWAY from server",
	"http2: Transport received Server's graceful shutdown GOAWAY",
}

func knownText(text string) bool {
	return slices.ContainsFunc(texts, func(known string) bool { return strings.Contains(text, known) })
}
