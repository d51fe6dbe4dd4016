package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"gcsup/session"
)

func TestNetworkHints(t *testing.T) {
	none := &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "nowhere.invalid", IsNotFound: true}}
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	reset := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	for _, c := range []struct {
		err  session.Error
		want string // "": nothing of the network
	}{
		{session.Error{Kind: session.ErrNotFound, Err: none}, "the name in https://h is not known here"},
		{session.Error{Kind: session.ErrBudget, Err: none}, "the name in https://h is not known here"},
		{session.Error{Kind: session.ErrNotFound, Err: &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}}, "the certificate of https://h is not trusted here"},
		{session.Error{Kind: session.ErrNotFound, Err: errors.New("http: server gave HTTP response to HTTPS client")}, "https://h does not speak as Cloud Storage does"},
		{session.Error{Kind: session.ErrBudget, Err: refused}, "https://h cannot be reached"},
		{session.Error{Kind: session.ErrBudget, Err: reset}, ""},
		{session.Error{Kind: session.ErrNotFound, Status: 404}, ""},
		{session.Error{Kind: session.ErrBudget, Status: 503}, ""},
	} {
		got := networkHint(fmt.Errorf("while testing: %w", &c.err), "https://h")
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("networkHint(%v) = %q, want %q", &c.err, got, c.want)
		}
	}
}
