package fakegcs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"gcsup/fakegcs/internal/blob"
	"gcsup/fakegcs/internal/connlimit"
	"gcsup/fakegcs/internal/disk"
	"gcsup/fakegcs/internal/faultplan"
)

// quantum is the unit in which the service commits the bytes of an upload.
const quantum = blob.Quantum

// Options configures a [Server]. The zero value is a strict server in memory.
type Options struct {
	// Dir is the directory that keeps everything, created as needed. The next
	// server on it continues where the last one ended, even if that was killed,
	// but not after the death of the machine. Only one server may use a directory
	// at a time. Empty means memory.
	Dir string
	// CreateBuckets creates a bucket when a request first names it.
	CreateBuckets bool
	// Discard throws object bytes away and keeps sizes and checksums, for
	// benchmarks. Reads of object bytes are refused. Not together with Dir.
	Discard bool
	// NoMD5 disables MD5, which costs more than everything else together. Objects
	// have no md5Hash, incomplete uploads no X-Range-MD5, and an upload that
	// declares an MD5 is refused.
	NoMD5 bool
	// RunningHash adds x-goog-running-hash, the CRC32C of what is committed,
	// to the replies of incomplete uploads. The service sends it at times, but
	// does not document it.
	RunningHash bool
	// Query308 answers status queries with a real 308 even if the request
	// has X-GUploader-No-308, as Google's storage-testbench does. The service
	// answers 200 with an override header.
	Query308 bool
	// RequireToken returns 401 to requests without a bearer token from
	// [Server.AllowToken] or POST /_fakegcs/token. Session URIs need
	// none.
	RequireToken bool
	// Faults is the initial fault plan.
	Faults []Fault
	// Rate and TotalRate limit the bytes per second in each direction, of one
	// connection and of all together. 0 is no limit.
	Rate, TotalRate int64
	// Latency delays each reply.
	Latency time.Duration
	// ClockSkew is how far the server's clock is ahead of the machine's; a
	// negative one is behind. It shows in the Date header of every reply and in
	// the times of buckets and objects.
	ClockSkew time.Duration
	// KeepRequests is how many requests [Server.Requests] remembers. 0 means
	// 10000, and -1 none.
	KeepRequests int
	// OnRequest, if set, is called after every request, from many goroutines. It
	// must not block.
	OnRequest func(Request)
	// Logger receives warnings: about the directory, and, once each, about what
	// the server does not implement. nil discards them.
	Logger *slog.Logger
}

// Server is a Cloud Storage server. It is an [http.Handler]; create it with
// [New]. All methods may be called from any goroutine.
type Server struct {
	opts     Options
	log      *slog.Logger
	disk     *disk.Dir // nil in memory
	buffers  blob.Pool
	plan     faultplan.Plan
	requests requestLog
	limiter  *connlimit.Limiter
	tokens   tokens
	retry    retryTests
	missing  missing
	memory   memory
	ahead    atomic.Int64 // how far the clock was moved

	ctx            context.Context // ends when Close is called
	cancel         context.CancelFunc
	mu             sync.Mutex // guards what follows, and all buckets
	buckets        map[string]*bucket
	sessions       map[string]*session
	uploads        map[string]*multipartUpload
	lastGeneration int64

	runMu   sync.Mutex // guards what follows
	closed  bool
	running map[*body]bool
	idle    sync.WaitGroup
}

// New returns a server. It fails if the options contradict each other or the
// directory cannot be used. If another server has it, the error wraps [ErrInUse].
// A nil opts uses the defaults.
func New(opts *Options) (*Server, error) {
	s := &Server{buckets: map[string]*bucket{}, sessions: map[string]*session{}, uploads: map[string]*multipartUpload{}, running: map[*body]bool{}}
	if opts != nil {
		s.opts = *opts
	}
	if s.log = s.opts.Logger; s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	o := s.opts
	switch {
	case o.Dir != "" && o.Discard:
		return nil, errors.New("fakegcs: Options: Dir and Discard exclude each other")
	case o.Rate < 0 || o.TotalRate < 0 || o.Latency < 0:
		return nil, errors.New("fakegcs: Options: a negative rate or latency")
	}
	s.Advance(o.ClockSkew)
	if err := s.AddFaults(o.Faults...); err != nil {
		return nil, err
	}
	s.requests.keep = o.KeepRequests
	if s.requests.keep == 0 {
		s.requests.keep = 10000
	}
	s.limiter = connlimit.New(o.Rate, o.TotalRate)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if o.Dir != "" {
		d, err := disk.Open(o.Dir)
		if err != nil {
			return nil, fmt.Errorf("fakegcs: open directory: %w", err)
		}
		s.disk = d
		if err := s.load(); err != nil {
			return nil, fmt.Errorf("fakegcs: load directory: %w", errors.Join(err, d.Close()))
		}
	}
	return s, nil
}

// Close ends stalled and running requests, waits for them, and releases the
// directory. Later requests get 503.
func (s *Server) Close() error {
	s.runMu.Lock()
	again := s.closed
	s.closed = true
	for b := range s.running {
		b.interrupt()
	}
	s.runMu.Unlock()
	s.cancel()
	s.idle.Wait()
	s.memory.close()
	if again {
		return nil
	}
	return s.disk.Close()
}

// now returns the server's time. The service's clock has milliseconds.
func (s *Server) now() time.Time {
	return time.Now().Add(time.Duration(s.ahead.Load())).UTC().Truncate(time.Millisecond)
}

// Advance moves the server's clock forward, to make sessions expire.
func (s *Server) Advance(d time.Duration) { s.ahead.Add(int64(d)) }

// date sets the Date header by the server's clock.
func (s *Server) date(h http.Header) { h.Set("Date", s.now().Format(http.TimeFormat)) }

// AddFaults appends to the fault plan. It adds nothing when one of the faults
// is not valid.
func (s *Server) AddFaults(faults ...Fault) error {
	for i, f := range faults {
		if err := f.Validate(); err != nil {
			return fmt.Errorf("fakegcs: fault %d: %w", i+1, err)
		}
	}
	s.plan.Add(faults)
	return nil
}

// ClearFaults removes all faults.
func (s *Server) ClearFaults() { s.plan.Clear() }

// FaultReport returns each fault of the plan with its counts, in their order.
func (s *Server) FaultReport() []FaultCount { return s.plan.Report() }

// Object returns the metadata of the live generation of an object.
func (s *Server) Object(bucket, name string) (Object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[bucket]
	if b == nil {
		return Object{}, false
	}
	v := b.live(name)
	if v == nil {
		return Object{}, false
	}
	return *v.clone(), true
}

// OpenObject reads the bytes of the live generation of an object, even while
// it is being replaced or deleted. The caller closes the reader.
func (s *Server) OpenObject(bucket, name string) (io.ReadCloser, error) {
	v, refused := s.find(bucket, name, 0)
	if refused != nil {
		return nil, refused
	}
	r, err := v.blob.Section(0, v.Size)
	if err != nil {
		v.blob.Release()
		return nil, err
	}
	return &released{r, v.blob}, nil
}

// ReadObject returns the bytes of the live generation of an object.
func (s *Server) ReadObject(bucket, name string) ([]byte, error) {
	r, err := s.OpenObject(bucket, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	q := parse(r)
	if plain := inflated(r, q); plain != r {
		r, q = plain, parse(plain)
	}
	q.in = s.newBody(w, r)
	if !s.enter(q.in) {
		s.date(w.Header())
		http.Error(w, "the server is closed", http.StatusServiceUnavailable)
		return
	}
	defer s.leave(q.in)
	conn := s.limiter.Connect(r.RemoteAddr)
	defer conn.Disconnect()
	if conn != nil {
		q.in.step = conn.Step()
		q.in.pace = func(n int) { conn.In(s.ctx, n) }
	}
	sent := &sent{}
	defer func() { // even if the reply is a panic that ends the connection
		s.note(q, sent, start)
	}()
	rep := s.answer(q)
	if rep.stream != nil {
		defer rep.stream.Close()
	}
	s.send(w, q, rep, conn, sent)
}

func (s *Server) enter(b *body) bool {
	s.runMu.Lock()
	defer s.runMu.Unlock()
	if s.closed {
		return false
	}
	s.running[b] = true
	s.idle.Add(1)
	return true
}

func (s *Server) leave(b *body) {
	s.runMu.Lock()
	delete(s.running, b)
	s.runMu.Unlock()
	s.idle.Done()
}

func (s *Server) newBody(w http.ResponseWriter, r *http.Request) *body {
	b := &body{r: r.Body, cut: -1, stall: -1, corrupt: -1, stop: make(chan struct{})}
	if w != nil { // else a call of a batch, whose body is in memory
		rc := http.NewResponseController(w)
		b.expire = func() { // not every ResponseWriter can
			_ = rc.SetReadDeadline(time.Unix(1, 0))
			_ = rc.SetWriteDeadline(time.Unix(1, 0)) // a client that doesn't read
		}
	}
	b.wait = func(d time.Duration, stop <-chan struct{}) bool { return s.wait(&request{Request: r}, d, stop) }
	return b
}

// wait waits for d, or without end if d is 0. It returns false if the client has
// gone, the server is closed, or stop is closed first. The context of a request
// is useful only after its body was read: before that, net/http does not watch
// the connection.
func (s *Server) wait(q *request, d time.Duration, stop <-chan struct{}) bool {
	var after <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		after = timer.C
	}
	select {
	case <-after:
		return true
	case <-q.Context().Done():
	case <-s.ctx.Done():
	case <-stop:
	}
	return false
}

// hangup is the reply of a fault that sends none.
var hangup = &reply{}

// answer processes q, with the faults of the plan and of retry tests.
func (s *Server) answer(q *request) *reply {
	r := s.respond(q)
	if q.op == OpControl || r == hangup {
		return r
	}
	if r.missing != "" && s.missing.first(r.missing) {
		s.log.Warn("fakegcs: not implemented", "request", r.missing)
	}
	if q.fault.effect == "" {
		if do, err := s.retry.take(q, r); err == nil { // else it is the reply
			q.fault = newFault(do, q.op)
		}
	}
	if q.toUploadServer() && !r.foreign && r.header.Get("X-Guploader-Uploadid") == "" {
		id := q.query.Get("upload_id")
		if id == "" { // each request has an ID
			id = newUploadID()
		}
		r.mark(id)
	}
	if f := &q.fault.reply; f.truncate {
		r.truncate(f.truncateTo)
	}
	return r
}

// respond lets faults act on q before its operation is done, and does it.
func (s *Server) respond(q *request) *reply {
	if q.op == OpControl {
		return s.control(q)
	}
	s.nameSession(q)
	if s.plan.ByObject() {
		q.nameUpload()
	}
	do := s.plan.Take(q.planned())
	if do == nil {
		var err *apiError
		if do, err = s.retry.take(q, nil); err != nil {
			return err.reply(q.xml)
		}
	}
	q.fault = newFault(do, q.op)
	if r := s.interfere(q); r != nil {
		return r
	}
	if s.opts.RequireToken && !q.isSession() && !s.tokens.valid(bearer(q.Header), s.now()) {
		return refuse(http.StatusUnauthorized, "authError", "Invalid Credentials").reply(q.xml)
	}
	if err := s.billed(q); err != nil {
		if q.op == OpRead {
			return err.mediaReply(q.xml)
		}
		return err.reply(q.xml)
	}
	fields := q.query.Get("fields")
	if fields == "" || q.xml {
		return s.operate(q)
	}
	mask, err := parseFields(fields)
	if err != nil {
		return refuse(http.StatusBadRequest, "invalidParameter", "%v %s", err, fields).reply(false)
	}
	if bad := mask.unknown(schemaOf(q)); bad != "" {
		return refuse(http.StatusBadRequest, "invalidParameter", "%v %s", errFields, bad).reply(false)
	}
	r := s.operate(q)
	if r.status/100 == 2 && r.stream == nil && len(r.body) > 0 {
		r.body = mask.cut(r.body)
	}
	return r
}

// interfere lets the fault of q act before its operation, and on its body. It
// returns the reply if there is nothing else to do.
func (s *Server) interfere(q *request) *reply {
	q.in.meet(q.fault.body)
	f := &q.fault.entry
	switch {
	case f.status != nil:
		return statusReply(f.status, q.xml, s.now())
	case f.revoke:
		s.tokens.revoke(bearer(q.Header))
		return refuse(http.StatusUnauthorized, "authError", "Invalid Credentials").reply(q.xml)
	case f.hangUp:
		return hangup
	case f.wait:
		q.in.stalled.Store(f.stalled)
		if !s.wait(q, f.waitFor, q.in.stop) {
			return hangup
		}
		q.in.stalled.Store(false)
	}
	return nil
}

// nameSession gives a request on a session what its URL and headers need not
// have: the names of the object, and whether it carries the last byte.
func (s *Server) nameSession(q *request) {
	if q.upload == "" {
		return
	}
	s.mu.Lock()
	u := s.sessions[q.upload]
	s.mu.Unlock()
	if u == nil {
		return
	}
	q.bucket, q.object, q.xml = u.Meta.Bucket, u.Meta.Name, u.XML
	if c := q.contentRange; q.op == OpPut && q.rangeErr == nil && c.total < 0 {
		u.mu.Lock()
		defer u.mu.Unlock()
		if c.last+1 == u.Total {
			q.op = OpFinalize
		}
	}
}

// operate does what q asks for.
func (s *Server) operate(q *request) *reply {
	switch q.op {
	case OpStart:
		return s.start(q)
	case OpPut, OpFinalize, OpQuery, OpCancel:
		return s.onSession(q)
	case OpInsert:
		return s.insert(q)
	case OpGet:
		return s.get(q)
	case OpRead:
		return s.read(q)
	case OpList:
		return s.listObjects(q)
	case OpDelete:
		return s.delete(q)
	case OpPatch:
		return s.patch(q)
	case OpCompose:
		return s.compose(q)
	case OpRewrite:
		return s.rewrite(q)
	case OpRestore:
		return s.restore(q)
	case OpPartsStart, OpPartsPut, OpPartsComplete, OpPartsAbort, OpPartsList, OpPartsUploads:
		return s.onMultipart(q)
	case OpBucketInsert, OpBucketGet, OpBucketList, OpBucketPatch, OpBucketDelete:
		return s.onBuckets(q)
	case OpBucketLayout:
		return s.storageLayout(q)
	case OpBatch:
		return s.batch(q)
	}
	return s.unknown(q)
}

func (s *Server) delete(q *request) *reply {
	generation, err := generationParam(q.query.Get("generation"))
	if err != nil {
		return err.reply(q.xml)
	}
	cond, err := parseConditions(q.query, q.Header, "if")
	if err != nil {
		return err.reply(q.xml)
	}
	if err := s.deleteObject(q.bucket, q.object, generation, cond); err != nil {
		return err.reply(q.xml)
	}
	return newReply(http.StatusNoContent)
}
