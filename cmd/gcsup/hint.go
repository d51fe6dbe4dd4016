package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"

	"gcsup/backoff"
	"gcsup/session"
	"gcsup/upload/gcs"
)

// withHint adds what to do about err. endpoint is the one in use, "" where none
// is.
func withHint(err error, endpoint string) error {
	hint := classify(err).hint
	if network := networkHint(err, endpointText(endpoint)); network != "" {
		hint = network
	}
	if _, refused := errors.AsType[*session.Error](err); !refused && errors.Is(err, session.ErrCredentials) {
		hint = "" // there were none to refuse, and the error says what to do
	}
	if errors.Is(err, syscall.ENOSPC) {
		hint = "make room there, and run it again"
	}
	if hint == "" {
		return err
	}
	return hinted{err, hint}
}

// hinted is an error with what to do about it. The service ends its sentences
// with a full stop.
type hinted struct {
	error
	hint string
}

func (h hinted) Error() string { return strings.TrimSuffix(h.error.Error(), ".") + "; " + h.hint }
func (h hinted) Unwrap() error { return h.error }

// networkHint is what to do where the endpoint was not reached, "" where
// something else is wrong.
func networkHint(err error, endpoint string) string {
	e, ok := errors.AsType[*session.Error](err)
	redirect := ok && e.Status >= 300 && e.Status < 400
	if ok && (e.Status == http.StatusProxyAuthRequired || backoff.ProxyStatus(e.Err) == http.StatusProxyAuthRequired) {
		return "the proxy asks for a user name and a password: give them in HTTPS_PROXY (for an http endpoint HTTP_PROXY), as in http://USER:PASSWORD@HOST:PORT"
	}
	if !ok || e.Status != 0 && !redirect || !errors.Is(err, session.ErrNotFound) && !errors.Is(err, session.ErrBudget) {
		return ""
	}
	if ts, ok := errors.AsType[*gcs.TokenServiceError](err); ok {
		return fmt.Sprintf("access tokens come from %s, which cannot be used now: see to this machine's network, or let GOOGLE_APPLICATION_CREDENTIALS name another key file", ts.Host)
	}
	_, unknown := errors.AsType[*net.DNSError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	op, dial := errors.AsType[*net.OpError](err)
	switch {
	case backoff.ProxyStatus(e.Err) != 0:
		return fmt.Sprintf("the proxy does not connect to %s: see to the proxy, or let NO_PROXY name the host", endpoint)
	case dial && op.Op == "proxyconnect":
		return "the proxy cannot be used: correct HTTPS_PROXY or HTTP_PROXY, or let NO_PROXY name the host"
	case unknown:
		return fmt.Sprintf("the name in %s is not known here: correct it (--endpoint, STORAGE_EMULATOR_HOST), or see to this machine's network", endpoint)
	case untrusted:
		return fmt.Sprintf("the certificate of %s is not trusted here: let SSL_CERT_FILE name a file with its authority, or correct the endpoint", endpoint)
	case dial && op.Op == "dial":
		return fmt.Sprintf("%s cannot be reached: correct it (--endpoint, STORAGE_EMULATOR_HOST), or see to the network, or start what is to serve there", endpoint)
	case errors.Is(err, session.ErrNotFound):
		return fmt.Sprintf("%s does not answer as Cloud Storage does: correct the endpoint (http or https, the port), or see to the proxy if there is one", endpoint)
	}
	return ""
}
