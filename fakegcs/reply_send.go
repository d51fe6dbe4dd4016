package fakegcs

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"gcsup/fakegcs/internal/connlimit"
)

// sent records the part of a reply that was sent.
type sent struct {
	status   int    // 0: no reply
	reported string // its Range header
	bytes    int64
	drop     connectionEnd // how the connection ends if there is no reply
}

// connectionEnd is how a connection ends without a reply.
type connectionEnd int

const (
	notDropped connectionEnd = iota
	dropFIN                  // in order
	dropRST                  // with a reset
)

// send writes the reply with the effects of the fault of q. It reads the request to
// its end first, because a client that still writes when the connection closes may
// lose the reply.
func (s *Server) send(w http.ResponseWriter, q *request, rep *reply, conn *connlimit.Conn, out *sent) {
	f := &q.fault.reply
	if rep == hangup {
		if f.readFirst { // with unread data, the close would be a reset
			_, _ = io.Copy(io.Discard, q.in)
		}
		out.drop = dropFIN
		if f.reset {
			out.drop = dropRST
		}
		return
	}
	if !f.early {
		_, err := io.Copy(io.Discard, q.in)
		switch {
		case errors.Is(err, errCut):
			out.drop = dropRST
			return
		case errors.Is(err, errInterrupted):
			out.drop = dropFIN
			return
		}
	}
	if f.hold && f.holdAfter == 0 && !s.wait(q.Context(), f.holdFor, q.in.stop) {
		out.drop = dropFIN
		return
	}
	if f.lose {
		out.drop = dropRST
		return
	}
	if s.opts.Latency > 0 && !s.wait(q.Context(), s.opts.Latency, q.in.stop) {
		out.drop = dropFIN
		return
	}
	s.date(w.Header())
	for k, v := range rep.header {
		w.Header()[k] = v
	}
	length := rep.length
	if rep.stream == nil && rep.length == 0 {
		length = int64(len(rep.body))
	}
	if length >= 0 && rep.status != http.StatusNoContent && rep.status != http.StatusNotModified {
		w.Header().Set("Content-Length", strconv.FormatInt(length, 10))
	}
	if f.closesAfter > 0 && s.sendAndClose(w, q, rep, length, out) {
		return
	}
	if f.lastOne {
		w.Header().Set("Connection", "close")
	}
	limit := int64(-1)
	if f.cut {
		limit = f.cutAfter
	}
	out.status, out.reported = rep.status, rep.header.Get("Range")
	w.WriteHeader(rep.status)
	to := conn.Writer(s.ctx, w)
	if f.hold && f.holdAfter > 0 {
		to = &heldWriter{w: to, left: f.holdAfter, hold: func() error {
			_ = http.NewResponseController(w).Flush() // the client must receive the bytes so far
			if !s.wait(q.Context(), f.holdFor, q.in.stop) {
				return errInterrupted
			}
			return nil
		}}
	}
	if q.Method != http.MethodHead {
		out.bytes = rep.copyTo(to, limit)
	}
	if limit >= 0 {
		_ = http.NewResponseController(w).Flush() // the client must receive the bytes so far
		drop(w, true)                             // some HTTP libraries take an orderly close for the end of the body
	}
}

// date sets the Date header to the time of the server's clock.
func (s *Server) date(h http.Header) { h.Set("Date", s.now().Format(http.TimeFormat)) }

// sendAndClose sends the reply on the hijacked connection, and closes the connection
// after replyFault.closesAfter. On HTTP/2, which has no connection to hijack, it does
// nothing and returns false.
func (s *Server) sendAndClose(w http.ResponseWriter, q *request, rep *reply, length int64, out *sent) bool {
	header := w.Header()
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return false
	}
	var body io.Reader = bytes.NewReader(rep.body)
	if rep.stream != nil {
		body = rep.stream
	}
	counted := &countingReader{Reader: body}
	resp := &http.Response{
		StatusCode: rep.status, ProtoMajor: 1, ProtoMinor: 1, Header: header,
		ContentLength: length, Body: io.NopCloser(counted), Request: q.Request,
	}
	_ = resp.Write(rw) // fails if the client has disconnected
	_ = rw.Flush()
	out.status, out.reported, out.bytes = rep.status, rep.header.Get("Range"), counted.n
	s.running.wg.Go(func() {
		timer := time.NewTimer(q.fault.reply.closesAfter)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.ctx.Done():
		}
		_ = conn.Close()
	})
	return true
}

type countingReader struct {
	io.Reader
	n int64
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.n += int64(n)
	return n, err
}

// heldWriter calls hold once, before the byte that follows the first left bytes.
type heldWriter struct {
	w    io.Writer
	left int64
	hold func() error // nil after the call
}

func (h *heldWriter) Write(p []byte) (int, error) {
	n := 0
	if h.hold != nil {
		n = int(min(int64(len(p)), h.left))
		if k, err := h.w.Write(p[:n]); err != nil || n == len(p) {
			h.left -= int64(k)
			return k, err
		}
		hold := h.hold
		h.hold = nil
		if err := hold(); err != nil {
			return n, err
		}
	}
	k, err := h.w.Write(p[n:])
	return n + k, err
}

// copyTo writes the body, at most limit bytes of it if limit is not negative.
func (r *reply) copyTo(w io.Writer, limit int64) int64 {
	if r.stream == nil {
		p := r.body
		if limit >= 0 {
			p = p[:min(int64(len(p)), limit)]
		}
		n, _ := w.Write(p) // fails if the client has disconnected
		return int64(n)
	}
	var from io.Reader = r.stream
	if limit >= 0 {
		from = io.LimitReader(from, limit)
	}
	n, err := io.Copy(w, from)
	if err != nil {
		panic(http.ErrAbortHandler) // the Content-Length was sent already
	}
	return n
}

// drop ends the connection of an unfinished reply: with a reset (RST) or in order (FIN).
func drop(w http.ResponseWriter, reset bool) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil { // HTTP/2: RST_STREAM
		panic(http.ErrAbortHandler)
	}
	if reset {
		raw := conn
		if t, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
			raw = t.NetConn()
		}
		if l, ok := raw.(interface{ SetLinger(int) error }); ok {
			awaitSent(raw)
			_ = l.SetLinger(0)
		}
		_ = raw.Close()
	}
	_ = conn.Close()
}
