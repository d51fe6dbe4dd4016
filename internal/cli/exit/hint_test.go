package exit

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"testing"

	"gcsup/backoff"
	"gcsup/session"
	"gcsup/session/state"
)

func TestAdd(t *testing.T) {
	full := &fs.PathError{Op: "write", Path: "state/x.tmp", Err: syscall.ENOSPC}
	for _, c := range []struct {
		err  error
		want string
	}{
		{full, "write state/x.tmp: no space left on device; free some disk space, and run the command again"},
		{&session.Error{Op: "start", Kind: session.ErrNotFound, Status: 404, Message: "No bucket.", FromService: true}, "destination not found: 404 Not Found: No bucket; create the bucket, or correct its name or the endpoint"},
		{session.ErrSessionLost, "session lost"},
		{state.ErrNotFound, state.ErrNotFound.Error() + "; see gcsup uploads list"},
		{&session.Error{Op: "start", Kind: session.ErrNotFound, Err: &net.DNSError{Err: "no such host", Name: "nowhere.invalid"}},
			"destination not found: lookup nowhere.invalid: no such host; the host name in the endpoint does not resolve: correct it (--endpoint, STORAGE_EMULATOR_HOST), or check this machine's network"},
		{&session.Error{Op: "start", Kind: session.ErrCredentials, Err: &backoff.ProxyError{Proxy: "http://p:3128", Code: 407, Status: "407 Proxy Authentication Required"}},
			"credentials rejected: proxy http://p:3128 answered CONNECT with 407 Proxy Authentication Required; the proxy requires a user name and a password: set them in HTTPS_PROXY (HTTP_PROXY for an http endpoint), as in http://USER:PASSWORD@HOST:PORT"},
		{&session.Error{Op: "start", Kind: session.ErrCredentials, Status: 407},
			"credentials rejected: 407 Proxy Authentication Required; the proxy requires a user name and a password: set them in HTTPS_PROXY (HTTP_PROXY for an http endpoint), as in http://USER:PASSWORD@HOST:PORT"},
		{&session.Error{Op: "start", Kind: session.ErrCredentials, Status: 401, Message: "Invalid Credentials"},
			"credentials rejected: 401 Unauthorized: Invalid Credentials; log in again (gcloud auth application-default login), or set GOOGLE_APPLICATION_CREDENTIALS to another key file"},
		{&session.Error{Op: "start", Kind: session.ErrCredentials, Status: 401, Message: "Anonymous caller.", Err: &session.AnonymousError{Reason: "it is Monday"}},
			"credentials rejected: 401 Unauthorized: Anonymous caller: no credentials were sent, because it is Monday"},
		{fmt.Errorf("state in gs://b/x: %w", &session.Error{Op: "bucket", Kind: session.ErrRetriesExhausted, Status: 503, Attempts: 3, Err: &session.Error{Op: "query", Status: 500}}),
			"state in gs://b/x: retries exhausted: 503 Service Unavailable: 500 Internal Server Error (after 3 attempts at offset 0)"},
		{errors.Join(&session.Error{Op: "insert", Status: 403}, fmt.Errorf("insert: %w", fs.ErrExist)), "403 Forbidden; insert: file already exists"},
		{&session.Error{Op: session.OpInsert, Kind: session.ErrPermission, Status: 403, Reason: "retentionPolicyNotMet", Message: "Subject to retention.", FromService: true},
			"permission denied: 403 Forbidden: Subject to retention; a hold or a retention protects the object: wait until it ends, or upload to another name"},
	} {
		got := WithHint(c.err, "", "gcsup")
		if got.Error() != c.want || !errors.Is(got, c.err) {
			t.Errorf("Add(%v) = %v, want %s", c.err, got, c.want)
		}
	}
}

// noTokens is an error like *gcs.TokenServiceError.
type noTokens struct{ error }

func (noTokens) TokenService() string { return "https://tokens" }

func TestOfNetwork(t *testing.T) {
	none := &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "nowhere.invalid", IsNotFound: true}}
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	reset := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	for _, c := range []struct {
		err  session.Error
		want string // "": nothing of the network
	}{
		{session.Error{Kind: session.ErrNotFound, Err: none}, "the host name in https://h does not resolve"},
		{session.Error{Kind: session.ErrRetriesExhausted, Err: none}, "the host name in https://h does not resolve"},
		{session.Error{Kind: session.ErrNotFound, Err: &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}}, "the certificate of https://h is not trusted"},
		{session.Error{Kind: session.ErrNotFound, Err: errors.New("http: server gave HTTP response to HTTPS client")}, "https://h does not answer like Cloud Storage"},
		{session.Error{Kind: session.ErrRetriesExhausted, Err: refused}, "https://h cannot be reached"},
		{session.Error{Kind: session.ErrRetriesExhausted, Err: &net.OpError{Op: "proxyconnect", Net: "tcp", Err: refused}}, "the proxy cannot be reached"},
		{session.Error{Kind: session.ErrRetriesExhausted, Err: &backoff.ProxyError{Proxy: "http://p:3128", Code: 503, Status: "503 Down"}}, "the proxy does not connect to https://h"},
		{session.Error{Kind: session.ErrRetriesExhausted, Err: errors.New("Bad Gateway")}, "the proxy does not connect to https://h"},
		{session.Error{Kind: session.ErrRetriesExhausted, Err: noTokens{none}}, "access tokens come from https://tokens, which is not available: check this machine's network, or use other credentials"},
		{session.Error{Kind: session.ErrRetriesExhausted, Err: reset}, ""},
		{session.Error{Kind: session.ErrNotFound, Status: 302}, "https://h does not answer like Cloud Storage"},
		{session.Error{Kind: session.ErrNotFound, Status: 404}, "https://h does not answer like Cloud Storage"},
		{session.Error{Kind: session.ErrNotFound, Status: 404, FromService: true}, ""},
		{session.Error{Kind: session.ErrRetriesExhausted, Status: 503}, ""},
		{session.Error{Kind: session.ErrNotFound, Status: 200}, "https://h does not answer like Cloud Storage: log in to this network"}, // a captive portal
		{session.Error{Kind: session.ErrRetriesExhausted, Status: 200}, "https://h does not answer like Cloud Storage: log in to this network"},
		{session.Error{Kind: session.ErrRetriesExhausted, Status: 308}, ""}, // an upload that makes no progress
		{session.Error{Kind: session.ErrRetriesExhausted, Status: 429}, ""},
	} {
		got := ofNetwork(fmt.Errorf("while testing: %w", &c.err), "https://h")
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("ofNetwork(%v) = %q, want %q", &c.err, got, c.want)
		}
	}
}
