package session

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"gcsup/internal/objectmeta"
)

// WithHeader returns a client that adds header to every request, for example
// X-Goog-Custom-Audit-* headers
// (https://cloud.google.com/storage/docs/audit-logging#add-custom-metadata). The
// error wraps [ErrInvalid] if the protocol or the HTTP client sets one of these
// headers, or if one cannot be sent.
func (c *Client) WithHeader(header http.Header) (*Client, error) {
	own := *c
	own.header = make(http.Header, len(header))
	for name, values := range header {
		name = textproto.CanonicalMIMEHeaderKey(name)
		if reservedHeader(name) {
			return nil, invalid("the header %s is set by the protocol or by the HTTP client", name)
		}
		// Check both first: the error of net/http would look like one that is worth a retry.
		if name == "" || strings.ContainsFunc(name, objectmeta.NotToken) || strings.ContainsFunc(strings.Join(values, ""), isControl) {
			return nil, invalid("the header %q cannot be sent", name)
		}
		own.header[name] = append([]string(nil), values...)
	}
	return &own, nil
}

// isControl reports whether net/http refuses the value of a header with r.
func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// reservedHeader reports whether a caller may not set a header, whose name is in
// canonical form.
func reservedHeader(name string) bool {
	switch name {
	case "Host", "Authorization", "Accept-Encoding", "Expect", "Connection", "Transfer-Encoding", "Trailer", "Te", "Range",
		"X-Goog-Hash", idempotencyHeader, "X-Guploader-No-308", "X-Http-Method-Override":
		return true
	}
	prefixes := []string{"Content-", "If-", "X-Upload-", "X-Goog-Encryption-", "X-Goog-Copy-", "X-Goog-If-"}
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
