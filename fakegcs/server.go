package fakegcs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/fakegcs/internal/blob"
	"gcsup/fakegcs/internal/connlimit"
	"gcsup/fakegcs/internal/disk"
	"gcsup/fakegcs/internal/faultplan"
	"gcsup/fakegcs/internal/ops"
	"gcsup/fakegcs/internal/writerate"
)

// granularity is the unit in which the service commits the bytes of an upload.
const granularity = blob.Granularity

// DefaultMemory is the default of [Options.Memory].
const DefaultMemory = 512 << 20

// Options configure a [Server]. The zero value is a strict server in memory.
type Options struct {
	// Dir is the directory that keeps everything. It is created if necessary. The next
	// server on it continues with the state of the last one, even if the last one was
	// killed, but not after a crash of the machine. Only one server may use a directory
	// at a time. "" means memory.
	Dir string
	// CreateBuckets creates a bucket when a request first names it.
	CreateBuckets bool
	// Memory is how many bytes of objects and open uploads are kept in memory. Others are in
	// a file in the directory for temporary files. Close removes it. If the server is killed,
	// the system removes it, except on Windows, where it remains. If it cannot be written, the
	// upload gets 503. 0 means 512 MiB, and -1 none. With Dir, no bytes are in memory.
	Memory int64
	// Discard drops object bytes and keeps only sizes and checksums, for benchmarks.
	// Reads of object bytes are refused. Discard excludes Dir.
	Discard bool
	// NoMD5 disables MD5, which costs more time than everything else together. Objects
	// have no md5Hash, incomplete uploads no X-Range-MD5, and an upload that declares an
	// MD5 is refused.
	NoMD5 bool
	// NoRunningHash omits x-goog-running-hash, the CRC32C of the committed bytes, from the
	// replies of incomplete uploads. The service sends it, but does not document it, so
	// that a client must not need it.
	NoRunningHash bool
	// Query308 answers status queries with a real 308 even if the request
	// has X-GUploader-No-308, as Google's storage-testbench does. The service
	// answers 200 with an override header.
	Query308 bool
	// NoIdempotencyTokens executes a request even if an earlier one had the same
	// X-Goog-Gcs-Idempotency-Token. The service does that if the earlier one is more than two
	// minutes old. Otherwise it returns the reply to the earlier request. The server keeps
	// the latest 4,096 replies for that, in memory even with Dir.
	NoIdempotencyTokens bool
	// RequireToken returns 401 to requests without a bearer token from
	// [Server.AllowToken] or POST /_fakegcs/token. Session URIs need
	// none.
	RequireToken bool
	// Faults is the initial fault plan.
	Faults []faults.Fault
	// Buckets and Objects exist from the start, and their buckets are created as needed.
	// A bucket that Dir has already is left as it is.
	Buckets []Bucket
	Objects []ObjectContent
	// Seed, if not nil, has more objects: a folder for each bucket, and in it a file for
	// each object, named by its path. It is read when the server is made or reset. At the
	// top, names that begin with a dot are left out.
	Seed fs.FS
	// Rate limits the bytes per second of each connection, TotalRate those of all
	// connections together, in each direction. 0 means no limit.
	Rate, TotalRate int64
	// Latency delays each reply.
	Latency time.Duration
	// BucketRate limits the writes to a bucket per second, as the service does: each range
	// of its names accepts that many, and refuses more with 429. A bucket has one range at
	// first. A range that has at least 80 % of BucketRate for SplitAfter is divided in two.
	// A write is an insert, the start of an upload, a deletion or another change of an
	// object. 0 means no limit.
	BucketRate int
	// SplitAfter is the time after which a range is divided, see BucketRate. 0 means 20 minutes.
	SplitAfter time.Duration
	// ClockSkew is how far the server's clock is ahead of the machine's clock, or behind
	// if it is negative. It affects the Date header of every reply and the times of
	// buckets and objects.
	ClockSkew time.Duration
	// KeepRequests is the minimum number of requests that are kept for [Server.Requests].
	// 0 means 10000, and -1 none.
	KeepRequests int
	// OnRequest, if set, is called after every request, from many goroutines. It
	// must not block.
	OnRequest func(Request)
	// Logger receives warnings about the directory, and one about each feature that the
	// server does not implement and each query parameter that it does not know. nil
	// discards them.
	Logger *slog.Logger
}

// Server is a Cloud Storage server. It is an [http.Handler]; create it with
// [New]. All methods may be called from any goroutine.
type Server struct {
	*core
	life       sync.Mutex         // held by Close and Reset
	cancel     context.CancelFunc // ends core.ctx
	store      *store
	sessions   *sessions
	multiparts *multiparts
	projects   projects

	plan     faultplan.Plan
	retry    retryTests
	tokens   tokens
	limiter  *connlimit.Limiter
	writes   *writerate.Limiter // nil if there is no limit
	requests requestLog
	missing  missing
	running  runningRequests
	replies  firstReplies
}

// New returns a server. It fails if the options contradict each other or the
// directory cannot be used. If another server uses the directory, the error wraps
// [ErrInUse]. A nil opts uses the defaults.
func New(opts *Options) (*Server, error) {
	c := &core{}
	st := &store{core: c, buckets: map[string]*bucket{}}
	s := &Server{
		core: c, store: st,
		sessions:   &sessions{store: st, byID: map[string]*session{}},
		multiparts: &multiparts{store: st, byID: map[string]*multipartUpload{}},
	}
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
	case o.Memory < -1:
		return nil, fmt.Errorf("fakegcs: Options: Memory is %d, want -1 or more", o.Memory)
	case o.Rate < 0 || o.TotalRate < 0 || o.Latency < 0 || o.BucketRate < 0 || o.SplitAfter < 0:
		return nil, errors.New("fakegcs: Options: a negative rate or latency")
	}
	s.heap = blob.NewHeap(max(cmp.Or(o.Memory, DefaultMemory), 0), s.memory.freed)
	s.Advance(o.ClockSkew)
	if err := s.AddFaults(o.Faults...); err != nil {
		return nil, err
	}
	s.requests.keep, s.requests.onRequest = o.KeepRequests, o.OnRequest
	if s.requests.keep == 0 {
		s.requests.keep = 10000
	}
	s.limiter = connlimit.New(o.Rate, o.TotalRate)
	if o.BucketRate > 0 {
		s.writes = writerate.New(o.BucketRate, s.opts.splitAfter())
	}
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
	if err := s.store.seed(); err != nil {
		return nil, fmt.Errorf("fakegcs: Options: %w", errors.Join(err, s.heap.Close(), s.disk.Close()))
	}
	return s, nil
}

// Close ends stalled and running requests, waits for them, and releases the directory
// and the temporary file. Later requests get 503.
func (s *Server) Close() error {
	s.life.Lock()
	defer s.life.Unlock()
	first := s.running.close()
	s.cancel()
	s.running.wg.Wait()
	s.memory.close()
	if !first {
		return nil
	}
	return errors.Join(s.heap.Close(), s.disk.Close())
}

// Advance moves the server's clock forward, to make sessions expire.
func (s *Server) Advance(d time.Duration) { s.ahead.Add(int64(d)) }

// AddFaults appends to the fault plan. It adds nothing if one of the faults is not
// valid.
func (s *Server) AddFaults(list ...faults.Fault) error {
	for i, f := range list {
		if err := f.Validate(); err != nil {
			return fmt.Errorf("fakegcs: fault %d: %w", i+1, err)
		}
	}
	s.plan.Add(list)
	return nil
}

// ClearFaults removes all faults.
func (s *Server) ClearFaults() { s.plan.Clear() }

// FaultReport returns each fault of the plan with its counts, in their order.
func (s *Server) FaultReport() []faults.Count { return s.plan.Report() }

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	q := parse(r)
	if plain := inflated(r, q); plain != r {
		r, q = plain, parse(plain)
	}
	if q.resets() {
		s.serveReset(w)
		return
	}
	q.in = s.newBody(w, r)
	if !s.running.enter(q.in) {
		s.date(w.Header())
		http.Error(w, "the server is closed", http.StatusServiceUnavailable)
		return
	}
	defer s.running.leave(q.in)
	conn := s.limiter.Connect(r.RemoteAddr)
	defer conn.Disconnect()
	if conn != nil {
		q.in.step = conn.Step()
		q.in.pace = func(n int) { conn.In(s.ctx, n) }
	}
	sent := &sent{}
	defer func() { // even if the reply is a panic that ends the connection
		s.requests.note(q, sent, start)
		if sent.drop != notDropped { // only now: who sees it finds the request in the log
			drop(w, sent.drop == dropRST)
		}
	}()
	rep := s.answer(q)
	if rep.stream != nil {
		defer rep.stream.Close()
	}
	s.send(w, q, rep, conn, sent)
}

// hangup represents the missing reply if a fault sends none.
var hangup = &reply{}

// answer returns the reply to q, and applies the faults of the plan and of retry tests.
func (s *Server) answer(q *request) *reply {
	r := s.respond(q)
	if q.op == ops.Control || r == hangup {
		return r
	}
	if r.missing != "" && s.missing.first(r.missing) {
		s.log.Warn("fakegcs: not implemented", "request", r.missing)
	}
	if q.fault.effect == "" {
		if do, err := s.retry.take(q, r); err == nil { // otherwise err is already the reply
			q.fault = newFault(do, q.sessionData())
		}
	}
	if !r.foreign {
		r.complete(q, s.now())
	}
	if f := &q.fault.reply; f.truncate {
		r.truncate(f.truncateTo)
	}
	return r
}

// respond applies the faults that act before the operation of q, and performs it.
func (s *Server) respond(q *request) *reply {
	if q.op == ops.Control {
		return s.control(q)
	}
	s.sessions.identify(q)
	do := s.plannedFault(q)
	if do == nil {
		var err *apiError
		if do, err = s.retry.take(q, nil); err != nil {
			return err.reply(q.xml)
		}
	}
	q.fault = newFault(do, q.sessionData())
	if r := s.applyEntryFault(q); r != nil {
		return r
	}
	if s.opts.RequireToken && !q.isSession() && !s.tokens.valid(bearer(q.Header), s.now()) {
		return refuse(http.StatusUnauthorized, "authError", "Invalid Credentials").reply(q.xml)
	}
	if err := s.checkBilling(q); err != nil {
		if q.op == faults.OpRead {
			return err.mediaReply(q.xml)
		}
		return err.reply(q.xml)
	}
	if err := s.checkParameters(q); err != nil {
		return err.reply(q.xml)
	}
	if err := s.admitWrite(q); err != nil {
		return err.reply(q.xml)
	}
	fields := q.query.Get("fields")
	if fields == "" || q.xml {
		return s.execute(q)
	}
	mask, err := parseFields(fields)
	if err != nil {
		return refuse(http.StatusBadRequest, "invalidParameter", "%v %s", err, fields).reply(false)
	}
	if bad := mask.unknown(schemaOf(q)); bad != "" {
		return refuse(http.StatusBadRequest, "invalidParameter", "%v %s", errFields, bad).reply(false)
	}
	r := s.execute(q)
	if r.status/100 == 2 && r.stream == nil && len(r.body) > 0 {
		r.body = mask.cut(r.body)
	}
	return r
}

// plannedFault counts q, and returns the action of the fault plan for it, or nil.
func (s *Server) plannedFault(q *request) *faults.Action {
	if s.plan.Empty() {
		return nil
	}
	if s.plan.ByObject() {
		q.nameUpload()
	}
	return s.plan.Take(q.planned())
}

// applyEntryFault applies the fault of q before its operation, and to its body. It returns
// the reply if the operation must not be performed.
func (s *Server) applyEntryFault(q *request) *reply {
	q.in.setFault(q.fault.body)
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
		if !s.wait(q.Context(), f.waitFor, q.in.stop) {
			return hangup
		}
		q.in.stalled.Store(false)
	}
	return nil
}

// execute performs the operation of q, unless q is the repeat of a request that was executed.
func (s *Server) execute(q *request) *reply {
	if s.opts.NoIdempotencyTokens {
		return s.operate(q)
	}
	return s.replies.once(q, s.now(), func() *reply { return s.operate(q) })
}

// operate performs the operation of q.
func (s *Server) operate(q *request) *reply {
	objects := objectAPI{s.store}
	switch q.op {
	case faults.OpStart:
		return s.sessions.start(q)
	case faults.OpPut, faults.OpFinalize, faults.OpQuery, faults.OpCancel:
		return s.sessions.answer(q)
	case faults.OpInsert:
		return objects.insert(q)
	case faults.OpGet:
		return objects.get(q)
	case faults.OpRead:
		return objects.read(q)
	case faults.OpList:
		return objects.list(q)
	case faults.OpDelete:
		return objects.delete(q)
	case faults.OpPatch:
		return objects.patch(q)
	case faults.OpCompose:
		return objects.compose(q)
	case ops.Rewrite:
		return objects.rewrite(q)
	case ops.Restore:
		return objects.restore(q)
	case ops.Move:
		return objects.move(q)
	case ops.ACLList, ops.ACLGet, ops.ACLInsert, ops.ACLPatch, ops.ACLDelete:
		return aclAPI{s.store}.answer(q)
	case ops.HMACInsert, ops.HMACGet, ops.HMACList, ops.HMACUpdate, ops.HMACDelete, ops.ServiceAccount:
		return s.projects.answer(q, s.now())
	case faults.OpPartsStart, faults.OpPartsPut, faults.OpPartsComplete, faults.OpPartsAbort, faults.OpPartsList, ops.PartsUploads:
		return s.multiparts.answer(q)
	case ops.BucketInsert, faults.OpBucketGet, ops.BucketList, ops.BucketPatch, ops.BucketDelete, faults.OpBucketLayout, faults.OpBucketPermissions,
		ops.BucketLock, ops.PolicyGet, ops.PolicySet:
		return bucketAPI{s.store, &s.tokens}.answer(q)
	case ops.NotificationInsert, ops.NotificationGet, faults.OpNotificationList, ops.NotificationDelete:
		return notificationAPI{s.store}.answer(q)
	case ops.FolderInsert, ops.FolderGet, ops.FolderList, faults.OpFolderDelete, ops.ManagedFolderInsert, faults.OpManagedFolderGet,
		ops.ManagedFolderList, ops.ManagedFolderDelete, faults.OpManagedFolderPermissions:
		return folderAPI{s.store}.answer(q)
	case ops.Batch:
		return s.batch(q)
	}
	return q.unknown()
}
