package session

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
)

const redacted = "[session URI redacted]"

// URI is a session URI. Any client that has it can write to the session without
// credentials (https://cloud.google.com/storage/docs/resumable-uploads#session-uris).
// It may also identify a multipart upload, which is as secret. A URI redacts itself
// when printed, logged or marshaled. Only [Encode] writes it.
type URI struct {
	// p is a pointer, because fmt prints unexported fields of an enclosing
	// struct without calling their methods. For a *string it prints the
	// address.
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

// String returns a fixed text instead of the secret.
func (u URI) String() string {
	if u.IsZero() {
		return "[no session URI]"
	}
	return redacted
}

// Format prints the text of String for every verb and flag.
func (u URI) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(u.String())) }

// LogValue returns the text of String.
func (u URI) LogValue() slog.Value { return slog.StringValue(u.String()) }

// MarshalText returns the text of String, so that encoders such as
// encoding/json do not write the secret.
func (u URI) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// uploadID returns the secret part of the URI.
func (u URI) uploadID() string {
	p, err := url.Parse(u.reveal())
	if err != nil {
		return ""
	}
	q := p.Query()
	return cmp.Or(q.Get("upload_id"), q.Get("uploadId"))
}

// scrub removes the secret from a text of the server or of a transport.
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

// fresh returns the URI of a new session from its Location header, which may be
// relative. Its scheme and host must be those of the endpoint, because the
// client sends its credentials there.
func (c *Client) fresh(location string) (URI, error) {
	if location == "" {
		return URI{}, errors.New("the reply has no Location header")
	}
	ref, err := url.Parse(location)
	if err != nil {
		// The text of err has the URI.
		return URI{}, errors.New("the Location header is not a URL")
	}
	u := c.base().ResolveReference(ref)
	if u.Scheme != c.base().Scheme || !sameHost(u, c.base()) || u.User != nil {
		return URI{}, fmt.Errorf("%w: the Location header points to %s://%s, the endpoint is %s", ErrURIMismatch, u.Scheme, u.Host, c.Endpoint())
	}
	u.Host = c.base().Host // the same spelling of the host in every URI
	return newURI(u.String()), nil
}

// adopt checks a session URI from a store. A writer of the store could plant
// one, so that scheme, host, path and bucket must match the configured ones.
func (c *Client) adopt(uri URI, bucket string) error {
	u, err := url.Parse(uri.reveal())
	if err != nil || uri.IsZero() {
		return fmt.Errorf("%w: not a URL", ErrURIMismatch)
	}
	switch {
	case u.Scheme != c.base().Scheme:
		return fmt.Errorf("%w: scheme %q, want %q", ErrURIMismatch, u.Scheme, c.base().Scheme)
	case !sameHost(u, c.base()) || u.User != nil || u.Opaque != "":
		return fmt.Errorf("%w: host %q, want %q", ErrURIMismatch, u.Host, c.base().Host)
	case u.Path != "/upload/storage/v1/b/"+bucket+"/o" && u.Path != "/resumable/upload/storage/v1/b/"+bucket+"/o":
		return fmt.Errorf("%w: not an upload path of bucket %q", ErrURIMismatch, bucket)
	case u.Query().Get("upload_id") == "":
		return fmt.Errorf("%w: no upload_id", ErrURIMismatch)
	}
	return nil
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
