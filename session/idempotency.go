package session

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strconv"
)

// idempotencyHeader is the header of idempotency tokens, see WithIntention.
const idempotencyHeader = "X-Goog-Gcs-Idempotency-Token"

// WithIntention returns a client whose requests have idempotency tokens, in the header
// X-Goog-Gcs-Idempotency-Token. For two minutes after an insert or a delete that
// succeeded, the service answers a repeat that has the same token with the first reply,
// and does not execute it again:
// https://github.com/googleapis/google-cloud-cpp/pull/12347, measured in
// https://github.com/kmoneil/zig-gcp/blob/main/src/storage/idempotency.zig.
//
// The token is a UUID, computed from id and from everything that the request asks for. A
// request that is repeated with the same id therefore has the same token. Two different
// requests never have the same one: the service would ignore the content of the second.
// id must be unique, such as the result of [crypto/rand.Text]. After a request has
// succeeded, use a new id to make the same request again.
//
// Tokens are an additional protection. [Decide] does not depend on them, and no caller
// should. Requests that change nothing, and those of the XML API, have no token.
func (c *Client) WithIntention(id string) *Client {
	own := *c
	own.intention = id
	return &own
}

// addIdempotencyToken adds the token to a request that is otherwise complete. content is
// the part of the body that distinguishes the request from others with the same headers.
func addIdempotencyToken(req *http.Request, intention string, content []byte) {
	if intention == "" {
		return
	}
	h := sha256.New()
	_, _ = io.WriteString(h, intention+"\n"+req.Method+" "+req.URL.String()+" "+strconv.FormatInt(req.ContentLength, 10)+"\n")
	_ = req.Header.WriteSubset(h, notHashed)
	h.Write(content)
	sum := h.Sum(nil)
	sum[6], sum[8] = sum[6]&0x0f|0x40, sum[8]&0x3f|0x80 // https://www.rfc-editor.org/rfc/rfc9562#section-5.4
	id := hex.EncodeToString(sum[:16])
	req.Header.Set(idempotencyHeader, id[:8]+"-"+id[8:12]+"-"+id[12:16]+"-"+id[16:20]+"-"+id[20:])
}

// notHashed are the headers that do not affect the token: a Content-Type may have a random
// boundary, and the SHA-256 of an encryption key is in a header of its own.
var notHashed = map[string]bool{"Content-Type": true, encryptionKeyHeader: true}
