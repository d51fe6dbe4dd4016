package session

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
)

const redacted = "[session URI redacted]"

// URI is a session URI: whoever holds it can write to the session without
// credentials (https://cloud.google.com/storage/docs/resumable-uploads#session-uris).
// It therefore shows itself to nobody: printing, logging and marshalling give
// a fixed text. [Encode] is the one way to write it out.
type URI struct {
	// A pointer, because fmt prints unexported fields of an enclosing
	// struct without asking their methods: of a *string it shows an address.
	p *string
}

func newURI(raw string) URI { return URI{&raw} }

func (u URI) reveal() string {
	if u.p == nil {
		return ""
	}
	return *u.p
}

// IsZero reports whether there is no session.
func (u URI) IsZero() bool { return u.p == nil || *u.p == "" }

// String returns a fixed text in the place of the secret.
func (u URI) String() string {
	if u.IsZero() {
		return "[no session URI]"
	}
	return redacted
}

// Format prints the text of String for every verb and flag.
func (u URI) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(u.String())) }

// LogValue is the text of String.
func (u URI) LogValue() slog.Value { return slog.StringValue(u.String()) }

// MarshalText gives the text of String, so that encoding/json and others
// cannot write the secret by accident.
func (u URI) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// uploadID is the secret part, for taking it out of texts that a server echoes.
func (u URI) uploadID() string {
	p, err := url.Parse(u.reveal())
	if err != nil {
		return ""
	}
	return p.Query().Get("upload_id")
}

// scrub takes the secret out of a text that came from elsewhere.
func (u URI) scrub(text string) string {
	if u.IsZero() || text == "" {
		return text
	}
	text = strings.ReplaceAll(text, u.reveal(), redacted)
	if id := u.uploadID(); id != "" {
		text = strings.ReplaceAll(text, id, "[redacted]")
		text = strings.ReplaceAll(text, url.QueryEscape(id), "[redacted]")
	}
	return text
}

// fresh takes the Location that the service gave for a new session. It may be
// relative; its scheme and host must be those that were asked, because the
// credentials go where it points.
func (c *Client) fresh(location string) (URI, error) {
	if location == "" {
		return URI{}, errors.New("the reply has no Location header")
	}
	ref, err := url.Parse(location)
	if err != nil {
		// The parse error would print the URI.
		return URI{}, errors.New("the Location header is not a URL")
	}
	u := c.endpoint.ResolveReference(ref)
	if u.Scheme != c.endpoint.Scheme || !sameHost(u, c.endpoint) || u.User != nil {
		return URI{}, fmt.Errorf("%w: the Location header points to %s://%s, the endpoint is %s", ErrForeignURI, u.Scheme, u.Host, c.Endpoint())
	}
	u.Host = c.endpoint.Host // as it is written there, so that it is one host for everybody
	return newURI(u.String()), nil
}

// adopt takes a session URI from a store. Who can write there could plant
// one, so scheme, host, path and bucket must all be the configured ones.
func (c *Client) adopt(raw, bucket string) (URI, error) {
	u, err := url.Parse(raw)
	if err != nil || raw == "" {
		return URI{}, fmt.Errorf("%w: not a URL", ErrForeignURI)
	}
	switch {
	case u.Scheme != c.endpoint.Scheme:
		return URI{}, fmt.Errorf("%w: scheme %q, want %q", ErrForeignURI, u.Scheme, c.endpoint.Scheme)
	case !sameHost(u, c.endpoint) || u.User != nil || u.Opaque != "":
		return URI{}, fmt.Errorf("%w: host %q, want %q", ErrForeignURI, u.Host, c.endpoint.Host)
	case u.Path != "/upload/storage/v1/b/"+bucket+"/o" && u.Path != "/resumable/upload/storage/v1/b/"+bucket+"/o":
		return URI{}, fmt.Errorf("%w: not an upload path of bucket %q", ErrForeignURI, bucket)
	case u.Query().Get("upload_id") == "":
		return URI{}, fmt.Errorf("%w: no upload_id", ErrForeignURI)
	}
	return newURI(raw), nil
}

func sameHost(a, b *url.URL) bool {
	return strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "http" {
		return "80"
	}
	return "443"
}
