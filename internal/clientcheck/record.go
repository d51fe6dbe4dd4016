package clientcheck

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
)

// recorder passes requests on to a server, and records each with its reply. It also acts in the
// middle of a run: see hold and once.
type recorder struct {
	server *fakegcs.Server
	start  time.Time

	mu       sync.Mutex // guards the fields below
	list     []*Exchange
	running  int
	sessions map[string]int // number of a session by its ID
	run      int
	sent     int64 // bytes of request bodies in this run
	at       int64 // of sent, at which the run meets meet; 0 for never
	meet     func()
	held     <-chan struct{} // after meet, bodies are not read until it is closed; nil: they are
	cut      int64           // the connection breaks once when sent reaches it; 0 for never
	wasCut   bool
}

func newRecorder() *recorder {
	return &recorder{start: time.Now(), sessions: map[string]int{}}
}

// begin begins the next run. When at bytes have arrived, meet is called once. If held is not nil,
// no request brings more bytes from then on, and all are broken off when it is closed.
func (r *recorder) begin(at int64, meet func(), held <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.run++
	r.sent, r.at, r.meet, r.held = 0, at, meet, held
}

// arrived counts n bytes of a body. It reports whether the body ends here.
func (r *recorder) arrived(n int) (broken bool) {
	r.mu.Lock()
	r.sent += int64(n)
	met := r.at > 0 && r.sent >= r.at
	meet, held := r.meet, r.held
	if met {
		r.meet = nil
	}
	r.mu.Unlock()
	if !met {
		return false
	}
	if meet != nil {
		meet()
	}
	if held == nil {
		return false
	}
	<-held
	return true
}

// room returns how many of n bytes may be read before the connection breaks.
func (r *recorder) room(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if left := r.cut - r.sent; left > 0 && !r.wasCut {
		return int(min(int64(n), left))
	}
	return n
}

// breaks reports whether the connection of x breaks now.
func (r *recorder) breaks(x *Exchange) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	x.Until = time.Since(r.start)
	if r.cut == 0 || r.wasCut || r.sent < r.cut {
		return false
	}
	r.wasCut = true
	return true
}

// settled waits until no request runs, for at most limit. A stalled request runs until the server
// is closed.
func (r *recorder) settled(limit time.Duration) {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		r.mu.Lock()
		n := r.running
		r.mu.Unlock()
		if n == 0 {
			return
		}
	}
}

// exchanges returns what was recorded, in the order in which the requests arrived. The requests on
// the server's own paths are left out.
func (r *recorder) exchanges() []Exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []Exchange
	for _, x := range r.list {
		if x.Op != "" {
			list = append(list, *x)
		}
	}
	return list
}

// ServeHTTP implements [http.Handler].
func (r *recorder) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	x := &Exchange{
		At: time.Since(r.start), Method: q.Method, Header: shown(q.Header, requestHeaders), Length: q.ContentLength,
		Range: parseRange(q.Header.Get("Content-Range")), Token: q.Header.Get("X-Goog-Gcs-Idempotency-Token"),
	}
	r.mu.Lock()
	x.Run = max(r.run, 1)
	x.Session = r.sessions[q.URL.Query().Get("upload_id")]
	number := len(r.list)
	r.list = append(r.list, x)
	r.running++
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.running--
		r.mu.Unlock()
	}()
	passed := q.Clone(q.Context())
	// The user agent is the one header that the server's log returns unchanged. It tells logged
	// which exchange a record belongs to.
	passed.Header.Set("User-Agent", strconv.Itoa(number))
	body := &countedBody{ReadCloser: q.Body, of: r, x: x}
	if q.Method == http.MethodPut || q.Method == http.MethodPost {
		passed.Body = body
	}
	r.server.ServeHTTP(&recordedReply{ResponseWriter: w, of: r, x: x}, passed)
	if body.cut {
		r.mu.Lock()
		x.Status, x.Fault = 0, faults.EffectCutRequest
		r.mu.Unlock()
		reset(w)
	}
}

// reset resets the connection of a request whose body was not read to its end.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2: resets the stream
	}
	raw := conn
	if secure, ok := conn.(*tls.Conn); ok {
		raw = secure.NetConn()
	}
	if tcp, ok := raw.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // otherwise the connection ends in order
	}
	_ = raw.Close()
}

// logged adds what the server has recorded. It is [fakegcs.Options].OnRequest.
func (r *recorder) logged(log fakegcs.Request) {
	number, err := strconv.Atoi(log.UserAgent)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || number >= len(r.list) {
		return // a request of the kit itself
	}
	x := r.list[number]
	x.Elapsed, x.Path, x.Op, x.Bucket, x.Object = log.Elapsed, log.Path, log.Op, log.Bucket, log.Object
	x.Received, x.Status, x.Fault = log.Received, log.Status, log.Fault
}

// countedBody is the body of a request of a client.
type countedBody struct {
	io.ReadCloser
	of  *recorder
	x   *Exchange
	cut bool // the connection breaks
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:b.of.room(len(p))])
	if n == 0 {
		return n, err
	}
	if b.of.arrived(n) {
		return n, io.ErrUnexpectedEOF
	}
	if b.of.breaks(b.x) {
		b.cut = true
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

// textLimit is how many bytes of a reply's body are kept.
const textLimit = 1000

// recordedReply keeps the headers and the beginning of the body of a reply.
type recordedReply struct {
	http.ResponseWriter
	of *recorder
	x  *Exchange
}

// Unwrap is for [http.ResponseController].
func (w *recordedReply) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *recordedReply) WriteHeader(status int) {
	if status >= 200 {
		h := w.Header()
		w.of.mu.Lock()
		w.x.Partial = status == http.StatusPermanentRedirect || h.Get("X-Http-Status-Code-Override") == "308"
		w.x.Reply = shown(h, replyHeaders)
		if location, err := url.Parse(h.Get("Location")); err == nil && location.Query().Has("upload_id") {
			w.x.Session = len(w.of.sessions) + 1
			w.of.sessions[location.Query().Get("upload_id")] = w.x.Session
		}
		w.of.mu.Unlock()
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recordedReply) Write(p []byte) (int, error) {
	w.of.mu.Lock()
	if left := textLimit - len(w.x.Text); left > 0 {
		w.x.Text += strings.ToValidUTF8(string(p[:min(left, len(p))]), "")
	}
	w.of.mu.Unlock()
	return w.ResponseWriter.Write(p)
}

var (
	requestHeaders = []string{
		"Content-Type", "X-Upload-Content-Type", "X-Upload-Content-Length", "X-Goog-Resumable", "Content-Range",
		"X-Goog-Hash", "Content-Md5", "X-Goog-If-Generation-Match", "X-Guploader-No-308",
		"X-Goog-Gcs-Idempotency-Token", "Content-Encoding",
	}
	replyHeaders = []string{
		"Range", "X-Http-Status-Code-Override", "Content-Type", "X-Range-Md5", "X-Goog-Running-Hash", "X-Goog-Hash",
		"X-Goog-Generation",
	}
)

// shown returns the lines of the given headers.
func shown(h http.Header, names []string) []string {
	var lines []string
	for _, name := range names {
		for _, value := range h.Values(name) {
			lines = append(lines, name+": "+value)
		}
	}
	return lines
}

// ids returns the IDs of the sessions.
func (r *recorder) ids() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []string
	for id := range r.sessions {
		list = append(list, id)
	}
	return list
}
