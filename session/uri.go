package session

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"gcsup/session/internal/secret"
)

// URI is a session URI. Any client that has it can write to the session without
// credentials (https://cloud.google.com/storage/docs/resumable-uploads#session-uris).
// It may also identify a multipart upload, which is as secret.
//
// A URI redacts itself when printed, logged or marshaled. No function of this package
// returns its text: only Encode of package state writes it. A URI comes from a reply,
// or from Decode of that package.
type URI secret.Text

// redacted is the text of a URI.
const redacted = "[session URI redacted]"

// IsZero reports whether there is no session.
func (u URI) IsZero() bool { return secret.Reveal(u) == "" }

// Format writes a fixed text instead of the URI, whatever the verb.
func (u URI) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, u.shown()) }

// MarshalText returns the same text as Format, so that encoders such as encoding/json
// do not write the URI.
func (u URI) MarshalText() ([]byte, error) { return []byte(u.shown()), nil }

func (u URI) shown() string {
	if u.IsZero() {
		return "[no session URI]"
	}
	return redacted
}

// scrubber removes the secrets of a request from a text of the server or of a transport: its
// URI u, the ID in it, and the encryption key in its header h.
func scrubber(u URI, h http.Header) func(text string) string {
	return func(text string) string { // few requests need it
		var pairs []string
		hide := func(secret, by string) {
			if secret != "" {
				pairs = append(pairs, secret, by, url.QueryEscape(secret), by)
			}
		}
		hide(secret.Reveal(u), redacted)
		if p, err := url.Parse(secret.Reveal(u)); err == nil {
			q := p.Query()
			hide(cmp.Or(q.Get("upload_id"), q.Get("uploadId")), "[redacted]")
		}
		hide(h.Get(encryptionKeyHeader), "[encryption key redacted]")
		return strings.NewReplacer(pairs...).Replace(text)
	}
}

// newURI returns the URI of a new session from its Location header, which may be
// relative. Its scheme and host must be those of the endpoint, because the
// client sends its credentials there.
func newURI(c *Client, location string) (URI, error) {
	if location == "" {
		return URI{}, errors.New("the reply has no Location header")
	}
	ref, err := url.Parse(location)
	if err != nil {
		// The text of err has the URI.
		return URI{}, errors.New("the Location header is not a URL")
	}
	u := c.base().ResolveReference(ref)
	if !c.isEndpoint(u) || u.User != nil {
		return URI{}, fmt.Errorf("%w: the Location header points to %s://%s, the endpoint is %s", ErrURIMismatch, u.Scheme, u.Host, c.Endpoint())
	}
	u.Host = c.base().Host // the same spelling of the host in every URI
	return URI(secret.New(u.String())), nil
}

// Adopt checks a session URI from a saved upload before the first request with it.
// Another writer of the store could have planted the URI. Scheme, host, path and bucket
// must therefore match the configured ones. Otherwise the error wraps [ErrURIMismatch].
func (c *Client) Adopt(uri URI, bucket string) error {
	u, err := url.Parse(secret.Reveal(uri))
	if err != nil || uri.IsZero() {
		return fmt.Errorf("%w: not a URL", ErrURIMismatch)
	}
	switch {
	case u.Scheme != c.base().Scheme:
		return fmt.Errorf("%w: scheme %q, want %q", ErrURIMismatch, u.Scheme, c.base().Scheme)
	case !c.isEndpoint(u) || u.User != nil || u.Opaque != "":
		return fmt.Errorf("%w: host %q, want %q", ErrURIMismatch, u.Host, c.base().Host)
	case u.Path != "/upload/storage/v1/b/"+bucket+"/o" && u.Path != "/resumable/upload/storage/v1/b/"+bucket+"/o":
		return fmt.Errorf("%w: not an upload path of bucket %q", ErrURIMismatch, bucket)
	case u.Query().Get("upload_id") == "":
		return fmt.Errorf("%w: no upload_id", ErrURIMismatch)
	}
	return nil
}
