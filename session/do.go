package session

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"gcsup/session/internal/secret"
)

// Exchange is a request for which [Client] has no method.
type Exchange struct {
	Op     Op     // names the exchange in errors; not one of the constants of this package
	Method string // of HTTP

	// Path has the elements of the path below the endpoint. If URI is not zero, the request
	// goes there instead. Query has further parameters, in encoded form.
	Path   []string
	URI    URI
	Query  string
	Header map[string]string

	// Content is the body of the request. If it is nil, Data may be object data of Size
	// bytes.
	Content []byte
	Data    io.Reader
	Size    int64

	// Read reads a reply with status 200, or with status 201 of the JSON API. It sets the fields
	// of r. If it returns an error, the reply counts as lost. If the reply is complete, but cannot
	// be used, Read sets r.Err. If Read is nil, the reply describes an object.
	Read func(r *Reply, resp *http.Response) error

	// Opened reads, instead of Read, the URL of the upload that the request opened. It becomes
	// Reply.URI. If it returns an error, the reply counts as lost.
	Opened func(resp *http.Response) (location string, err error)

	// ReadError returns the reason and the message in the body of a reply with another status.
	// A reply without a reason is not from the service. nil reads the errors of the JSON API.
	ReadError func(body io.Reader) (reason, message string)
}

// Do makes any exchange. Like the other methods, it makes one attempt.
func (c *Client) Do(ctx context.Context, x Exchange) Reply {
	own := call{op: x.Op, method: x.Method, header: x.Header, body: x.Data, length: x.Size, data: x.Data != nil, content: x.Content, readError: x.ReadError}
	if x.Content != nil {
		own.body, own.length = bytes.NewReader(x.Content), int64(len(x.Content))
	}
	switch {
	case !x.URI.IsZero():
		own = own.to(x.URI, prefixed("&", x.Query))
	default:
		own.url = c.url(nil, x.Path...) + prefixed("?", x.Query)
	}
	own.read = x.Read
	if x.Opened != nil {
		own.read = func(r *Reply, resp *http.Response) error {
			location, err := x.Opened(resp)
			if err != nil {
				return err
			}
			return c.opened(r, location)
		}
	}
	r := c.do(ctx, own)
	r.deletes, r.Reached = x.Method == http.MethodDelete, !x.URI.IsZero()
	r.Sent = min(r.Sent, x.Size)
	return r
}

// opened sets r from the Location of a reply that opened a session or a multipart upload.
func (c *Client) opened(r *Reply, location string) error {
	r.URI, r.Err = newURI(c, location)
	if errors.Is(r.Err, ErrURIMismatch) {
		return r.Err
	}
	return nil
}

// prefixed returns text after a prefix, or "".
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// to returns x with the URL of a session or of a multipart upload.
func (x call) to(uri URI, parameters string) call {
	x.uri, x.url = uri, secret.Reveal(uri)+parameters
	return x
}
