package engine

import (
	"context"
	"io"
	"time"

	"gcsup/internal/bucket"
	"gcsup/internal/multipart"
	"gcsup/session"
)

// exchange is one request and its reply.
type exchange struct {
	op     session.Op
	client *session.Client // see Requester.client
	body   io.Reader       // the object data that the request sends; nil if there is none
	from   int64           // the offset of body
	call   func(ctx context.Context, c *session.Client, body io.Reader) session.Reply
}

// joinTimeout is the time after which a silent request counts as stalled if the service makes an
// object from many. The service documents that this "may take several minutes":
// https://cloud.google.com/storage/docs/xml-api/post-object-complete.
const joinTimeout = 10 * time.Minute

// stallTimeout returns the stall timeout of the exchange. usual is that of other requests; 0 means none.
func (x exchange) stallTimeout(usual time.Duration) time.Duration {
	if usual > 0 && (x.op == multipart.OpComplete || x.op == bucket.OpCompose) {
		return max(usual, joinTimeout)
	}
	return usual
}

// unsent returns the reply to a request that was not made because of err.
func (x exchange) unsent(err error) session.Reply {
	return session.Reply{Op: x.op, Sent: x.from, Committed: -1, Err: err, Unsent: true, Findings: session.Findings{Reached: true}}
}
