package session

import (
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
)

// call is an exchange: its request, and how the reply to it is read.
type call struct {
	op     Op
	method string
	url    string
	uri    URI           // the session or the multipart upload of the request
	key    EncryptionKey // sent with the request; zero if there is none
	header map[string]string
	body   io.Reader // nil if there is none
	length int64     // of body
	data   bool      // body has object data

	// content is the part of the body that distinguishes the request from others with the same
	// headers, see addIdempotencyToken.
	content []byte

	// read sets r from a response that reports success. If it returns an error, the reply counts
	// as lost. If read is nil, the reply describes an object.
	read func(r *Reply, resp *http.Response) error

	// readError returns what the body of any other response shows, see [Exchange]. It is nil for the JSON
	// API. It is a function, so that a program that makes no multipart upload does not link encoding/xml.
	readError func(body io.Reader) (reason, message string)
}

// unsent returns the Reply for a request that was not sent because of err.
func unsent(op Op, err error) Reply { return Reply{Op: op, Committed: -1, Err: err} }

// request returns the request of x.
func (x call) request(c *Client) (*http.Request, error) {
	if x.body == nil {
		x.body = http.NoBody
	}
	req, err := http.NewRequest(x.method, x.url, x.body)
	if err != nil || req.URL.Host == "" {
		return nil, invalid("cannot build the request for %s", c.Endpoint()) // the text of err has the URI
	}
	req.ContentLength = x.length // explicit, so that net/http never uses chunked transfer encoding
	req.GetBody = nil            // net/http must not send the request again
	if x.op == OpCancel {
		// Make net/http send Content-Length: 0, which the service requires.
		req.TransferEncoding = []string{"identity"}
	}
	for name, value := range x.header {
		req.Header.Set(name, value)
	}
	if err := addKey(c, req, x.key); err != nil {
		return nil, err
	}
	if x.method != "GET" && x.op != OpQuery && x.readError == nil {
		addIdempotencyToken(req, c.intention, x.content)
	}
	maps.Copy(req.Header, c.header)
	return req, nil
}

// addKey adds the headers of k. It refuses to send the key to a host other than that of the
// endpoint.
func addKey(c *Client, req *http.Request, k EncryptionKey) error {
	switch {
	case k.IsZero():
		return nil
	case !k.HasSecret():
		return invalid("%w: only its SHA-256 %s is known", ErrEncryptionKey, k.sum)
	case !c.isEndpoint(req.URL):
		return fmt.Errorf("%w: the encryption key is not sent to %s://%s, the endpoint is %s", ErrURIMismatch, req.URL.Scheme, req.URL.Host, c.Endpoint())
	}
	req.Header.Set("X-Goog-Encryption-Algorithm", "AES256")
	req.Header.Set(encryptionKeyHeader, base64.StdEncoding.EncodeToString([]byte(*k.secret)))
	req.Header.Set("X-Goog-Encryption-Key-Sha256", k.sum)
	return nil
}
