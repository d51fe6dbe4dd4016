package fakegcs

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/fakegcs/internal/ops"
)

// Batches, https://cloud.google.com/storage/docs/batch: several calls of the
// JSON API in one request. Python's client sends them, and gcsfs to delete.

const maxCalls = 100

// batch processes the calls in order. Each call counts as a request, and faults can
// match it. A fault of the connection affects the whole batch.
func (s *Server) batch(q *request) *reply {
	boundary := multipartBoundary(q.Header.Get("Content-Type"))
	if boundary == "" {
		return refuse(http.StatusBadRequest, "badContent", "A batch is multipart/mixed, with a boundary.").reply(false)
	}
	parts := multipart.NewReader(io.LimitReader(q.in, maxCalls*metadataLimit), boundary)
	var out bytes.Buffer
	answers := multipart.NewWriter(&out)
	for n := 0; ; n++ {
		part, err := parts.NextRawPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return refuse(http.StatusBadRequest, "badContent", "Malformed multipart body: %v", err).reply(false)
		}
		if n == maxCalls {
			return refuse(http.StatusBadRequest, "invalid", "The batch has more than %d calls.", maxCalls).reply(false)
		}
		rep, met := s.call(q, part)
		if met.connection {
			q.fault = met // send applies it to the batch
		}
		if rep == hangup {
			return rep
		}
		header := textproto.MIMEHeader{"Content-Type": {"application/http"}}
		if id := strings.Trim(part.Header.Get("Content-ID"), "<>"); id != "" {
			header.Set("Content-ID", "<response-"+id+">")
		}
		w, err := answers.CreatePart(header)
		if err != nil { // a bytes.Buffer never fails
			return errInternal(err).reply(false)
		}
		rep.writeHTTP(w)
	}
	if err := answers.Close(); err != nil {
		return errInternal(err).reply(false)
	}
	r := newReply(http.StatusOK).set("Content-Type", "multipart/mixed; boundary="+answers.Boundary())
	r.body = out.Bytes()
	return r
}

// call processes one call of a batch. It also returns the fault that acted on it.
func (s *Server) call(outer *request, part io.Reader) (*reply, fault) {
	start := time.Now()
	text, refused := readMetadata(part)
	if refused != nil {
		return refused.reply(false), fault{}
	}
	// Some clients omit the blank line after the headers if there is no body.
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	head, body, _ := bytes.Cut(bytes.TrimLeft(text, "\n"), []byte("\n\n"))
	req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.TrimRight(string(head), "\n") + "\n\n")))
	if err != nil {
		return refuse(http.StatusBadRequest, "badRequest", "Failed to parse the call: %v", err).reply(false), fault{}
	}
	req = req.WithContext(outer.Context())
	req.Host, req.RemoteAddr, req.TLS = outer.Host, outer.RemoteAddr, outer.TLS
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if req.Header.Get("Authorization") == "" && outer.Header.Get("Authorization") != "" {
		req.Header.Set("Authorization", outer.Header.Get("Authorization"))
	}
	q := parse(req)
	q.in = s.newBody(nil, req)
	rep := refuse(http.StatusBadRequest, "badRequest", "A batch can't have a call of this kind: %s %s", req.Method, req.URL.Path).reply(false)
	if q.batchable() {
		rep = s.answer(q)
	}
	_, _ = io.Copy(io.Discard, q.in) // every request is read to its end
	s.requests.note(q, &sent{status: rep.status, bytes: int64(len(rep.body))}, start)
	return rep, q.fault
}

// batchable reports whether q may be in a batch. Requests that transfer object bytes,
// and batches, may not.
func (q *request) batchable() bool {
	switch q.op {
	case faults.OpGet, faults.OpList, faults.OpDelete, faults.OpPatch, faults.OpCompose, ops.Rewrite, ops.Restore, ops.BucketInsert, faults.OpBucketGet, ops.BucketList, ops.BucketPatch, ops.BucketDelete, faults.OpBucketLayout,
		faults.OpBucketPermissions, ops.NotificationInsert, ops.NotificationGet, faults.OpNotificationList, ops.NotificationDelete:
		return !q.xml
	}
	return false
}

// writeHTTP writes r as an HTTP message.
func (r *reply) writeHTTP(w io.Writer) {
	header := r.header.Clone()
	header.Set("Content-Length", strconv.Itoa(len(r.body)))
	_, _ = fmt.Fprintf(w, "HTTP/1.1 %d %s\r\n", r.status, http.StatusText(r.status))
	_ = header.Write(w)
	_, _ = io.WriteString(w, "\r\n")
	_, _ = w.Write(r.body)
}
