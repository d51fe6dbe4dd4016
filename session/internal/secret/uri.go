// Package secret has the type of a session URI. Only the packages below session can
// import it. No other program can therefore read the secret of a URI, or make a URI
// from a string.
package secret

import (
	"fmt"
	"log/slog"
)

// Redacted is the text of a URI.
const Redacted = "[session URI redacted]"

// URI is a session URI. Any client that has it can write to the session without
// credentials (https://cloud.google.com/storage/docs/resumable-uploads#session-uris).
// It may also identify a multipart upload, which is as secret. A URI redacts itself
// when printed, logged or marshaled.
type URI struct {
	// p is a pointer, because fmt prints unexported fields of an enclosing
	// struct without calling their methods. For a *string it prints the
	// address.
	p *string
}

// NewURI returns the URI with a secret.
func NewURI(raw string) URI { return URI{&raw} }

// Reveal returns the secret of u, or "" if u is zero. It is a function and no method, so
// that only an import of this package gives access to it.
func Reveal(u URI) string {
	if u.p == nil {
		return ""
	}
	return *u.p
}

// IsZero reports whether there is no session.
func (u URI) IsZero() bool { return Reveal(u) == "" }

// String returns a fixed text instead of the secret.
func (u URI) String() string {
	if u.IsZero() {
		return "[no session URI]"
	}
	return Redacted
}

// Format prints the text of String for every verb and flag.
func (u URI) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(u.String())) }

// LogValue returns the text of String.
func (u URI) LogValue() slog.Value { return slog.StringValue(u.String()) }

// MarshalText returns the text of String, so that encoders such as
// encoding/json do not write the secret.
func (u URI) MarshalText() ([]byte, error) { return []byte(u.String()), nil }
