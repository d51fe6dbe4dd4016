package screen

import (
	"cmp"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"gcsup/internal/cli/process"
	"gcsup/internal/cli/readable"
	"gcsup/session"
	"gcsup/session/state/bucketstore"
	"gcsup/upload"
)

// cause describes why an upload waits, in at most 18 columns, or 7 on a narrow
// terminal. It contains no addresses.
type cause struct{ text, short string }

var (
	timeout = cause{"timeout", "timeout"}
	closed  = cause{"connection closed", "closed"}
	noReply = cause{"no reply", "silent"}
	reset   = cause{"connection reset", "reset"}
	refused = cause{"connection refused", "refused"}
	noRoute = cause{"no network", "no net"}
)

// causes are the causes of errors of the operating system and of packages net and session. Windows has numbers that
// no other system uses, and returns none of the constants of package syscall for them.
var causes = []struct {
	err error
	cause
}{
	{syscall.ECONNRESET, reset}, {syscall.Errno(10054), reset},
	{syscall.ECONNREFUSED, refused}, {syscall.Errno(10061), refused},
	{syscall.ENETUNREACH, noRoute}, {syscall.Errno(10051), noRoute},
	{syscall.EHOSTUNREACH, noRoute}, {syscall.Errno(10065), noRoute},
	{syscall.EPIPE, closed}, {syscall.Errno(10053), closed}, // WSAECONNABORTED
	{syscall.Errno(10060), timeout},
	{io.EOF, closed}, {io.ErrUnexpectedEOF, closed}, {net.ErrClosed, closed},
	{session.ErrStalled, cause{"stalled", "stalled"}},
}

// address matches HOST:PORT, an IP address, and an arrow between two of them.
var address = regexp.MustCompile(`\[[0-9a-fA-F:.%a-z]+\](:\d+)?|\S*\d+\.\d+\.\d+\.\d+\S*|\S+:\d+\b|->`)

// causeOf returns the cause of a wait.
func causeOf(e upload.Event) cause {
	if e.Kind == upload.LeaseHeld {
		return cause{"lease", "lease"}
	}
	if !e.Store {
		return causeOfError(e.Err)
	}
	if errors.Is(e.Err, bucketstore.ErrSlow) {
		return cause{"state bucket slow", "slow"}
	}
	c := causeOfError(e.Err)
	if errors.Is(e.Err, session.ErrStalled) {
		c = noReply // the bucket has a timeout instead of a minimum rate
	}
	return cause{readable.Shorten("state "+c.text, 18), c.short}
}

// causeOfError returns the cause of a failed request.
func causeOfError(err error) cause {
	if failed, ok := errors.AsType[*session.Error](err); ok {
		if code := strconv.Itoa(failed.Status); failed.Status != 0 {
			return cause{code, code}
		}
		err = failed.Err
	}
	for _, c := range causes {
		if errors.Is(err, c.err) {
			return c.cause
		}
	}
	if t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); ok && t.Timeout() {
		return timeout
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return cause{"host not found", "no host"}
		}
		return cause{"name server fails", "no host"}
	}
	if failedTLS(err) {
		return cause{"TLS error", "TLS"}
	}
	if err == nil {
		return noReply
	}
	// The end of the text of an error that has no type.
	parts := strings.Split(address.ReplaceAllString(process.Printable(err.Error()), ""), ": ")
	last := cmp.Or(strings.Join(strings.Fields(parts[len(parts)-1]), " "), "network error")
	return cause{readable.Shorten(last, 18), readable.Shorten(last, 7)}
}

// failedTLS reports whether err is an error of package tls. An alert has no exported type. It
// is in a net.OpError with its direction as the operation.
func failedTLS(err error) bool {
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	op, ok := errors.AsType[*net.OpError](err)
	return certificate || record || ok && (op.Op == "remote error" || op.Op == "local error")
}
