package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http/httptrace"
	"sync"
	"time"

	"gcsup/internal/cli/exit"
	"gcsup/session"
)

// checkLimit is how long a check takes at most.
const checkLimit = 10 * time.Second

// errCheckLimit is the cause of a context whose check takes too long.
var errCheckLimit = errors.New("the check takes too long")

// limited makes a check within the limit.
func limited(ctx context.Context, limit time.Duration, check func(context.Context) error) error {
	progress := &requestProgress{}
	ctx, stop := context.WithTimeoutCause(progress.trace(ctx), limit, errCheckLimit)
	defer stop()
	err := check(ctx)
	if errors.Is(err, errCheckLimit) {
		return progress.late(limit)
	}
	return err
}

// requestProgress records how far the last request of a check came.
type requestProgress struct {
	mu     sync.Mutex
	text   string // "" if none was sent
	advice string
}

func (p *requestProgress) set(advice, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text, p.advice = fmt.Sprintf(format, args...), advice
}

// trace returns a context that records the requests made with it.
func (p *requestProgress) trace(ctx context.Context) context.Context {
	const dropped = "a firewall, a route or a VPN may drop the packets: check the network, or set HTTPS_PROXY if it needs a proxy"
	const silent = "check that server, or the proxy or firewall before it"
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSStart: func(i httptrace.DNSStartInfo) {
			p.set("check the DNS settings of this machine", "the name server does not answer for %s", i.Host)
		},
		ConnectStart: func(_, addr string) { p.set(dropped, "%s does not accept the connection", addr) },
		ConnectDone: func(_, addr string, err error) {
			if err == nil {
				p.set(silent, "%s accepts the connection, and sends nothing", addr)
			}
		},
		TLSHandshakeStart: func() { p.set(silent, "the TLS handshake does not end") },
		TLSHandshakeDone:  func(tls.ConnectionState, error) { p.set(silent, "the server sends nothing") },
		WroteRequest: func(httptrace.WroteRequestInfo) {
			p.set(silent, "the server accepts the request, and does not answer")
		},
		GotFirstResponseByte: func() { p.set(silent, "the answer of the server does not end") },
	})
}

// late returns the error of a check that did not end within limit.
func (p *requestProgress) late(limit time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := "no answer within " + limit.String()
	if p.text == "" { // the library for credentials sends some requests without the context
		p.text, p.advice = "the source of access tokens, such as the metadata server of this machine, does not answer", "name a key file with --credentials-file"
	}
	text += ": " + p.text + "; " + p.advice
	return exit.WithKind(errors.New(text), session.ErrRetriesExhausted)
}

// notTheService returns the error of an endpoint that does not answer as Cloud Storage does. A
// proxy that refuses the request ends an upload with the same kind.
func notTheService(reply session.Reply) error {
	e := *reply.Refusal()
	if !errors.Is(e.Kind, session.ErrCredentials) && !errors.Is(e.Kind, session.ErrPermission) {
		e.Kind = session.ErrNotFound
	}
	if e.Err == nil {
		e.Err = errors.New("the reply is not from Cloud Storage")
	}
	return &e
}
