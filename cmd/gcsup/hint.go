package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"gcsup/session"
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
	if hint == "" {
		return err
	}
	return fmt.Errorf("%w; %s", err, hint)
}

// networkHint is what to do where the endpoint was not reached, "" where
// something else is wrong.
func networkHint(err error, endpoint string) string {
	e, ok := errors.AsType[*session.Error](err)
	if !ok || e.Status != 0 || !errors.Is(err, session.ErrNotFound) && !errors.Is(err, session.ErrBudget) {
		return ""
	}
	_, unknown := errors.AsType[*net.DNSError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	op, dial := errors.AsType[*net.OpError](err)
	switch {
	case unknown:
		return fmt.Sprintf("the name in %s is not known here: correct it (--endpoint, STORAGE_EMULATOR_HOST), or see to this machine's network", endpoint)
	case untrusted:
		return fmt.Sprintf("the certificate of %s is not trusted here: let SSL_CERT_FILE name a file with its authority, or correct the endpoint", endpoint)
	case dial && op.Op == "dial":
		return fmt.Sprintf("%s cannot be reached: correct it (--endpoint, STORAGE_EMULATOR_HOST), or see to the network, or start what is to serve there", endpoint)
	case errors.Is(err, session.ErrNotFound):
		return fmt.Sprintf("%s does not speak as Cloud Storage does: correct the endpoint (http or https, the port)", endpoint)
	}
	return ""
}
