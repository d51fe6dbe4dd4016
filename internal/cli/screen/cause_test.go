package screen

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"

	"gcsup/internal/cli/readable"
	"gcsup/session"
	"gcsup/session/state/bucketstore"
	"gcsup/upload"
)

// unavailable is the error of a reply with status 503.
var unavailable = &session.Error{Status: 503}

func TestCauseOf(t *testing.T) {
	inURL := func(err error) error {
		return &session.Error{Err: &url.Error{Op: "Put", URL: "https://storage.googleapis.com", Err: err}}
	}
	for _, c := range []struct {
		err         error
		want, short string
	}{
		{unavailable, "503", "503"},
		{&session.Error{}, "no reply", "silent"},
		{inURL(&net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}), "connection reset", "reset"},
		{inURL(io.ErrUnexpectedEOF), "connection closed", "closed"},
		{inURL(&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", IsNotFound: true}}), "host not found", "no host"},
		{inURL(&net.DNSError{Err: "server misbehaving", IsTemporary: true}), "name server fails", "no host"},
		{inURL(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}), "connection refused", "refused"},
		{inURL(context.DeadlineExceeded), "timeout", "timeout"},
		{inURL(&tls.CertificateVerificationError{Err: errors.New("expired")}), "TLS error", "TLS"},
		{inURL(&net.OpError{Op: "remote error", Err: tls.AlertError(40)}), "TLS error", "TLS"},
		{inURL(tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}), "TLS error", "TLS"},
		{inURL(os.NewSyscallError("wsarecv", syscall.Errno(10054))), "connection reset", "reset"}, // of Windows
		{inURL(session.ErrStalled), "stalled", "stalled"},
		{errors.New("write 10.0.0.1:5->10.0.0.2:443"), "write", "write"},
		{errors.New("127.0.0.1:80"), "network error", "networ…"},
		{errors.New("something odd happened to the request"), "something odd hap…", "someth…"},
	} {
		got := causeOf(upload.Event{Err: c.err})
		if got.text != c.want || got.short != c.short || readable.Width(got.text) > 18 || readable.Width(got.short) > 7 {
			t.Errorf("causeOf(%v) = %q, want %q and %q", c.err, got, c.want, c.short)
		}
	}
	for _, c := range []struct {
		err         error
		want, short string
	}{
		{fmt.Errorf("lease: %w", unavailable), "state 503", "503"},
		{&session.Error{Err: fmt.Errorf("%w: %w", session.ErrStalled, bucketstore.ErrSlow)}, "state bucket slow", "slow"},
		{&session.Error{Err: session.ErrStalled}, "state no reply", "silent"},
	} {
		if got := causeOf(upload.Event{Store: true, Err: c.err}); got.text != c.want || got.short != c.short {
			t.Errorf("of the store: causeOf(%v) = %q, want %q and %q", c.err, got, c.want, c.short)
		}
	}
}
