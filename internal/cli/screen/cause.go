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
)

// causes are the causes of errors of the operating system and of packages net and
// session. connErrors are those of the operating system.
var causes = append(connErrors,
	errorCause{io.EOF, closed},
	errorCause{io.ErrUnexpectedEOF, closed},
	errorCause{net.ErrClosed, closed},
	errorCause{session.ErrStalled, cause{"stalled", "stalled"}},
)

type errorCause struct {
	err error
	cause
}

// address matches HOST:PORT, an IP address, and an arrow between two of them.
var address = regexp.MustCompile(`\[[0-9a-fA-F:.%a-z]+\](:\d+)?|\S*\d+\.\d+\.\d+\.\d+\S*|\S+:\d+\b|->`)

// causeOf returns the cause of a wait.
func causeOf(e upload.Event) cause {
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
