package examples

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/upload"
)

// Proxy is a handler that uploads the body of a request while it arrives. Register
// it for "PUT /{object...}". There is no object if
//
//   - the client disconnects before its body is complete,
//   - the client sends nothing for Idle (408),
//   - the request takes longer than Timeout (504),
//   - the body is larger than Limit (413).
//
// If the client disconnects later, the upload is interrupted. The object may then exist.
//
// Idle and Timeout replace ReadTimeout and WriteTimeout of the http.Server, which would
// limit the time of a whole upload. The server still needs a ReadHeaderTimeout.
type Proxy struct {
	Uploader *upload.Uploader
	Bucket   string
	Limit    int64         // of a body, in bytes
	Idle     time.Duration // without a byte from the client
	Timeout  time.Duration // of a request

	// Slots has the capacity for as many requests as may upload at a time. Others get 503.
	// If it is nil, there is no limit. Each upload uses up to 2 MiB of memory, even if
	// upload.Options.Memory is less.
	Slots chan struct{}
}

const (
	replyTimeout = 10 * time.Second // to send a reply
	drainTimeout = time.Second      // to read some more of a body before an error is sent
)

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn := http.NewResponseController(w)
	if r.ContentLength > p.Limit {
		// No byte of the body is read. A client with Expect: 100-continue sends none.
		fail(w, conn, http.StatusRequestEntityTooLarge)
		return
	}
	if p.Slots != nil {
		select {
		case p.Slots <- struct{}{}:
			defer func() { <-p.Slots }()
		default:
			w.Header().Set("Retry-After", "1")
			fail(w, conn, http.StatusServiceUnavailable)
			return
		}
	}
	spec := upload.Spec{Bucket: p.Bucket, Object: r.PathValue("object"), ContentType: r.Header.Get("Content-Type")}
	if r.Header.Get("If-None-Match") == "*" {
		spec.IfGenerationMatch = new(int64(0)) // only if there is no object
	}
	// When the body has been read, the context is done if the client disconnects.
	ctx, cancel := context.WithTimeout(r.Context(), p.Timeout)
	defer cancel()
	body := &clientBody{r: http.MaxBytesReader(w, r.Body, p.Limit), conn: conn, idle: p.Idle}
	result, err := p.Uploader.Reader(ctx, body, spec)
	switch {
	case body.idled: // look at this first: the server then also cancels the context
		fail(w, conn, http.StatusRequestTimeout)
		return
	case err != nil:
		fail(w, conn, status(err)) // log err, but do not send its text to clients
		return
	}
	w.Header().Set("X-Generation", strconv.FormatInt(result.Object.Generation, 10))
	_ = conn.SetWriteDeadline(time.Now().Add(replyTimeout)) // a WriteTimeout began with the request
	w.WriteHeader(http.StatusCreated)
}

// fail replies with an error. Before that, the server reads up to 256 KiB of the body. A
// client that sends them gets the reply and no reset of its connection. One that sends
// nothing must not delay the reply.
func fail(w http.ResponseWriter, conn *http.ResponseController, status int) {
	_ = conn.SetReadDeadline(time.Now().Add(drainTimeout))
	_ = conn.SetWriteDeadline(time.Now().Add(replyTimeout))
	http.Error(w, http.StatusText(status), status)
}

// clientBody is the body of a request. Each Read may take idle.
type clientBody struct {
	r     io.Reader
	conn  *http.ResponseController
	idle  time.Duration
	idled bool // a Read took that long; valid when Uploader.Reader has returned

	mu    sync.Mutex
	ended bool // by SetReadDeadline
}

func (b *clientBody) Read(p []byte) (int, error) {
	until := time.Now().Add(b.idle)
	b.setDeadline(until, false)
	n, err := b.r.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		b.idled = !time.Now().Before(until)
	}
	return n, err
}

// SetReadDeadline ends a Read. Uploader.Reader calls it with a time in the past if the
// upload fails, or ctx is done, while a Read waits for the client. It then restores the
// connection with the zero time, which is ignored: nothing more is read.
func (b *clientBody) SetReadDeadline(t time.Time) error {
	if t.IsZero() {
		return nil
	}
	return b.setDeadline(t, true)
}

// setDeadline sets the deadline of the connection, unless it was ended.
func (b *clientBody) setDeadline(t time.Time, end bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return nil
	}
	b.ended = end
	return b.conn.SetReadDeadline(t)
}

// status returns the status for an error. For the client, an error of the service is
// an error of the gateway, because the client does not know the bucket.
func status(err error) int {
	var tooLarge *http.MaxBytesError
	var interrupted *upload.InterruptedError
	var refused *session.Error
	switch {
	case errors.As(err, &interrupted) && errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	case errors.As(err, &interrupted), errors.Is(err, session.ErrRetriesExhausted), errors.Is(err, session.ErrQuota):
		return http.StatusServiceUnavailable
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, session.ErrPrecondition):
		return http.StatusPreconditionFailed
	case errors.Is(err, chunk.ErrRead), errors.Is(err, session.ErrInvalid):
		return http.StatusBadRequest
	case errors.As(err, &refused):
		return http.StatusBadGateway
	}
	return http.StatusInternalServerError
}
