package netconn

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
)

// DialTLS returns a DialTLSContext for t. It connects as net/http does without one: with the
// DialContext, TLSClientConfig and TLSHandshakeTimeout of t. It must not be used by a clone
// of t, which may have others. Responses have no TLS state.
func DialTLS(t *http.Transport) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		plain, err := t.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if c, ok := plain.(*Conn); ok {
			plain = c.Conn
		}
		config := &tls.Config{}
		if t.TLSClientConfig != nil {
			config = t.TLSClientConfig.Clone()
		}
		if config.ServerName == "" {
			config.ServerName = host
		}
		// A handshake during a step would wait for bytes that the cork holds back.
		steps := config.Renegotiation == tls.RenegotiateNever
		corked, below := &cork{Conn: plain}, plain
		if steps {
			below = corked
		}
		secure := tls.Client(below, config)
		if err := handshake(ctx, secure, t); err != nil {
			_ = plain.Close()
			return nil, err
		}
		if !steps {
			return secure, nil
		}
		return &secureConn{Conn: secure, below: corked}, nil
	}
}

func handshake(ctx context.Context, c *tls.Conn, t *http.Transport) error {
	trace := httptrace.ContextClientTrace(ctx)
	if trace != nil && trace.TLSHandshakeStart != nil {
		trace.TLSHandshakeStart()
	}
	limited := ctx
	if t.TLSHandshakeTimeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, t.TLSHandshakeTimeout)
		defer cancel()
	}
	err := c.HandshakeContext(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = timeoutError{}
	}
	if trace != nil && trace.TLSHandshakeDone != nil {
		trace.TLSHandshakeDone(c.ConnectionState(), err)
	}
	return err
}

// timeoutError is the error of net/http for a handshake that takes too long.
type timeoutError struct{}

func (timeoutError) Error() string   { return "TLS handshake timeout" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }
