package session

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"

	"gcsup/internal/ownconn"
)

// do makes an exchange. For object data, the reply has the number of bytes that were passed to
// the network.
func (c *Client) do(ctx context.Context, x call) Reply {
	var data *detachableBody
	if x.data && x.body != nil {
		data = &detachableBody{r: x.body}
		x.body = data
	}
	req, err := x.request(c)
	if err != nil {
		return unsent(x.op, err)
	}
	r := x.roundTrip(ctx, c, req)
	if data != nil {
		// net/http may still be reading the body when it returns an early reply.
		r.Sent = data.stop()
		r.Unsent = r.Status == 0 && r.Sent == 0
		if r.staleConnection() {
			c.doer().CloseIdleConnections() // probably broken, too
		}
	}
	return r
}

// roundTrip sends the request of x and parses the reply.
func (x call) roundTrip(ctx context.Context, c *Client, req *http.Request) Reply {
	reused := false
	scrub := scrubber(x.uri, req.Header)
	req = req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused },
	}))
	if req.Close = ownconn.Wanted(ctx); req.Close && req.Method != http.MethodGet {
		c.doer().CloseIdleConnections()
	}
	resp, err := c.doer().Do(req)
	if err != nil {
		return Reply{Op: x.op, Committed: -1, Err: transportError(ctx, scrub, err), Reused: reused}
	}
	defer func() {
		// Read to the end, so that the connection can be reused.
		_, _ = io.CopyN(io.Discard, resp.Body, bodyLimit)
		_ = resp.Body.Close()
	}()
	r := x.parseReply(scrub, resp)
	if r.Err != nil {
		r.Err = transportError(ctx, scrub, r.Err)
		if ctx.Err() != nil {
			r.Status = 0
		}
	}
	return r
}
