package upload_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/checksum"
	"gcsup/internal/multipart"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "run only this seed of the simulation, and print what happened")
	seedsFlag = flag.Uint64("seeds", uint64(testsize.Raced(16, testsize.Full(200, 32))), "the last seed that the simulation runs")
	firstFlag = flag.Uint64("first-seed", 1, "the first seed that the simulation runs")
)

// TestSimulation runs many uploads with random failures, each from one seed: faults
// in both directions of every exchange, crashes of the process at any state of the
// store, sources that change, and outages from seconds to days of virtual time. The
// oracle does not use the uploader: it checks the object, the error and the requests
// that the server received.
//
//	go test ./upload -run Simulation -seed 17        one seed, with its story
//	go test ./upload -run Simulation -seeds 100000   more of them
func TestSimulation(t *testing.T) {
	t.Parallel()
	if *seedFlag != 0 {
		simulate(t, *seedFlag, t.Logf)
		return
	}
	seeds := *seedsFlag
	if testing.Short() {
		seeds = min(seeds, 10)
	}
	var total outcome
	for seed := *firstFlag; seed <= seeds; seed++ {
		total.add(simulate(t, seed, nil))
		if t.Failed() {
			t.Fatalf("seed %d: go test ./upload -run Simulation -seed %d", seed, seed)
		}
	}
	t.Logf("seeds %d to %d: %+v", *firstFlag, seeds, total)
	n := seeds - *firstFlag + 1
	if n >= 16 && total.Streamed == 0 || n >= 100 && (total.Damaged == 0 || total.Intruded == 0) {
		t.Error("no part was sent without its checksum, none was stored damaged, or no other client wrote the object")
	}
	if n >= 16 && total.InParts == 0 || n >= 200 && total.Unread == 0 {
		t.Error("no stream was sent in parts, or no reader of one failed")
	}
	total.Auto.check(t, n)
	total.Spool.check(t, n)
	total.Zipped.check(t, n)
}

// outcome counts events for the report.
type outcome struct {
	Runs, Done, Failed, Crashes, Requests, Faults int
	Resumed, Restarted, Resent, Sent              int64
	Intruded                                      int   // seeds that end because another client wrote the object
	Streamed, Damaged                             int64 // parts sent without their checksum, and those stored with other bytes
	InParts, Left                                 int   // streams that were sent in parts, and what they left when the simulation ended
	Unread                                        int   // streams in parts whose reader failed
	Virtual                                       time.Duration
	Auto                                          autoOutcome
	Spool                                         spoolOutcome
	Zipped                                        zippedOutcome
}

func (o *outcome) add(p outcome) {
	o.Runs += p.Runs
	o.Done += p.Done
	o.Failed += p.Failed
	o.Crashes += p.Crashes
	o.Requests += p.Requests
	o.Faults += p.Faults
	o.Resumed += p.Resumed
	o.Restarted += p.Restarted
	o.Resent += p.Resent
	o.Sent += p.Sent
	o.Intruded += p.Intruded
	o.Streamed += p.Streamed
	o.Damaged += p.Damaged
	o.InParts += p.InParts
	o.Left += p.Left
	o.Unread += p.Unread
	o.Virtual += p.Virtual
	o.Auto.add(p.Auto)
	o.Spool.add(p.Spool)
	o.Zipped.add(p.Zipped)
}

func simulate(t *testing.T, seed uint64, logf func(string, ...any)) (out outcome) {
	dir := filepath.Join(testsize.MemDir(t), fmt.Sprint(seed))
	require.NoError(t, os.Mkdir(dir, 0o700))
	defer os.RemoveAll(dir)
	synctest.Test(t, func(t *testing.T) {
		s := &simulation{rnd: rand.New(rand.NewPCG(seed, 1)), levels: rand.New(rand.NewPCG(seed, 2)), logf: logf, out: &out, spec: spec}
		// A quarter of the seeds sends the file by compose, a quarter by multipart, and an eighth as
		// Parts.Auto chooses. A quarter of those by multipart sends a stream, and so does another sixteenth, from a spool. An
		// eighth of those by multipart compresses the file.
		s.parts, s.by = seed%2 == 1, upload.ByCompose
		if seed%4 == 3 {
			s.by = upload.ByMultipart
			s.streamed = seed%8 == 7
			s.inParts = seed%16 == 3
			s.zipped = seed%32 == 27
		}
		if seed%8 == 6 {
			s.parts, s.auto = true, newAuto(seed, s.rnd)
		}
		s.spec.Gzip = !s.parts && seed%6 < 3 || s.zipped
		if seed%16 == 12 {
			s.parts, s.by, s.spool = true, upload.ByMultipart, newSpool(seed, &out.Spool)
		}
		s.intruder = &intruder{rnd: rand.New(rand.NewPCG(seed, 5)), active: s.parts && seed%16 < 4}
		s.run(t, dir)
		if t.Failed() {
			t.Logf("seed %d\n%s", seed, s.w.trace())
		}
	})
	return out
}

type simulation struct {
	w        *world
	rnd      *rand.Rand
	logf     func(string, ...any)
	out      *outcome
	versions [][]byte // of the source, the newest last
	path     string
	spec     upload.Spec
	levels   *rand.Rand // of the compressor, if spec.Gzip
	parts    bool       // the file is sent in parts
	by       upload.JoinBy
	auto     *autoSimulation  // nil without Parts.Auto
	streamed bool             // parts do not fit in memory
	inParts  bool             // a stream is sent in parts, unless it fits in its first window
	zipped   bool             // a compressed file is sent in parts, unless it fits in its first window
	other    bool             // a process compressed the file to other bytes, so that parts may be sent again
	spool    *spoolSimulation // nil unless the stream is in a spool, and is sent in parts
	md5      bool             // the ETag of a part is its MD5
	edited   bool             // in a way that the modification time does not show
	intruder *intruder
	ended    context.Context
}

func (s *simulation) log(format string, args ...any) {
	if s.logf != nil {
		s.logf("%v "+format, append([]any{time.Now().Format("02 15:04:05.000")}, args...)...)
	}
}

func (s *simulation) chance(percent int) bool { return s.rnd.IntN(100) < percent }

// size returns a size at a boundary, or a random one.
func (s *simulation) size() int64 {
	if s.auto != nil {
		return s.auto.size(s.rnd)
	}
	if s.spool != nil {
		return s.spool.size()
	}
	if s.zipped {
		return 2*multipart.MinPart + s.rnd.Int64N(4*multipart.MinPart)
	}
	if s.by == upload.ByMultipart {
		return multipart.MinPart + s.rnd.Int64N(2*multipart.MinPart)
	}
	edges := []int64{0, 1, q - 1, q, q + 1, 2*q - 1, 2 * q, 2*q + 1, 5 * q}
	if s.chance(40) {
		return edges[s.rnd.IntN(len(edges))]
	}
	return s.rnd.Int64N(10 * q)
}

func (s *simulation) content(size int64) []byte {
	b := make([]byte, size)
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(s.rnd.Uint32())
	}
	_, _ = rand.NewChaCha8(seed).Read(b)
	for i := 1 << 10; s.zipped && i+256 <= len(b); i += 1 << 10 { // another version of the program makes it smaller
		copy(b[i:i+256], b[i-1<<10:])
	}
	return b
}

// faults returns a random plan.
func (s *simulation) faults() []faults.Fault {
	ops := []faults.Op{faults.OpStart, faults.OpPut, faults.OpPut, faults.OpQuery, faults.OpFinalize, faults.OpInsert, faults.OpGet, ""}
	if s.parts {
		ops = append(ops, faults.OpCompose, faults.OpCompose, faults.OpDelete, faults.OpDelete)
	}
	if s.by == upload.ByMultipart {
		ops = []faults.Op{
			faults.OpPartsStart, faults.OpPartsPut, faults.OpPartsPut, faults.OpPartsPut, faults.OpPartsList, faults.OpPartsList,
			faults.OpPartsComplete, faults.OpPartsComplete, faults.OpPartsAbort, faults.OpGet, "",
		}
	}
	if s.auto != nil {
		ops = s.auto.operations()
	}
	var plan []faults.Fault
	for range s.rnd.IntN(9) {
		all := slices.Concat(everyFault, dataFaults, finalFaults)
		if s.parts {
			all = append(all, s.refusal(), s.refusal(), s.refusal())
		}
		f := all[s.rnd.IntN(len(all))].plan
		f.Match = faults.Match{Op: ops[s.rnd.IntN(len(ops))]}
		f.Skip = s.rnd.IntN(4)
		f.Times = 1 + s.rnd.IntN(3)
		if f.Do.Bytes > 0 {
			f.Do.Bytes = s.rnd.Int64N(6*q) + 1
		}
		op, denies := f.Match.Op, f.Do.Status == 404 || f.Do.Status == 410
		if removes := op == faults.OpDelete || op == faults.OpPartsAbort || op == ""; removes && denies && f.Do.Body == "" {
			continue // nothing finds what the service says twice that it does not have
		}
		if f.Validate() == nil {
			plan = append(plan, f)
		}
	}
	return plan
}

// refusal returns a fault that refuses a request: the service does, or a proxy. The service
// may have executed it.
func (s *simulation) refusal() fault {
	codes := []int{200, 302, 400, 401, 403, 404, 409, 410, 411, 412, 413, 416, 418, 499, 501}
	do := faults.Action{Effect: faults.EffectStatus, Status: codes[s.rnd.IntN(len(codes))]}
	if do.Status < 400 || s.chance(50) {
		do.Body, do.ContentType = "<html>log in</html>", "text/html"
	}
	if s.chance(50) {
		do.Effect = faults.EffectStatusAfter
	}
	return fault{plan: faults.Fault{Do: do}}
}

// duplicate returns a transport that sees to it that the service gets some requests twice,
// the second time later.
func (s *simulation) duplicate(next http.RoundTripper) http.RoundTripper {
	var mu sync.Mutex
	rnd := rand.New(rand.NewPCG(s.rnd.Uint64(), 3))
	return roundTrip(func(req *http.Request) (*http.Response, error) {
		again := req.Method == http.MethodDelete || strings.HasSuffix(req.URL.Path, "/compose") || req.Method == http.MethodPost && req.URL.Query().Has("uploadId")
		mu.Lock()
		again, late := again && rnd.IntN(10) == 0 && !s.intruder.active, time.Duration(rnd.Int64N(int64(2*time.Minute)))
		mu.Unlock()
		if !again {
			return next.RoundTrip(req)
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		_ = req.Body.Close()
		ctx, cancel := context.WithCancel(context.WithoutCancel(req.Context()))
		second := req.Clone(ctx)
		req = req.Clone(req.Context())
		req.Body, second.Body = io.NopCloser(bytes.NewReader(body)), io.NopCloser(bytes.NewReader(body))
		time.AfterFunc(late, func() {
			// Time stops with the simulation, and a body that waits for its link would wait forever.
			defer context.AfterFunc(s.ended, cancel)()
			if r, err := next.RoundTrip(second); err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
				_ = r.Body.Close()
			}
		})
		return next.RoundTrip(req)
	})
}

// damage returns a transport that changes some parts of a multipart upload that have no checksum. The service
// then stores them, and some replies are lost.
func (s *simulation) damage(next http.RoundTripper) http.RoundTripper {
	var mu sync.Mutex
	rnd := rand.New(rand.NewPCG(s.levels.Uint64(), 4))
	return roundTrip(func(req *http.Request) (*http.Response, error) {
		if req.Method != http.MethodPut || !req.URL.Query().Has("partNumber") || req.Header.Get("X-Goog-Hash") != "" {
			return next.RoundTrip(req)
		}
		mu.Lock()
		damaged, lost := rnd.IntN(2) == 0, rnd.IntN(3) == 0
		mu.Unlock()
		if damaged {
			req = req.Clone(req.Context())
			req.Body = &flippedBody{ReadCloser: req.Body}
			req.URL = new(*req.URL)
			req.URL.RawQuery += damagedQuery // for the judge
		}
		resp, err := next.RoundTrip(req)
		mu.Lock()
		defer mu.Unlock()
		s.out.Streamed++
		if damaged && err == nil && resp.StatusCode == http.StatusOK {
			s.out.Damaged++
			if lost {
				_ = resp.Body.Close()
				return nil, errReset
			}
		}
		return resp, err
	})
}

// damagedQuery marks a request in the log of the service.
const damagedQuery = "&damaged"

// flippedBody changes the first byte of a body.
type flippedBody struct {
	io.ReadCloser
	read bool
}

func (b *flippedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 && !b.read {
		p[0], b.read = p[0]^1, true
	}
	return n, err
}

func (s *simulation) run(t *testing.T, dir string) {
	stream := s.chance(25) && s.auto == nil && !s.zipped || s.inParts || s.spool != nil
	s.intruder.canceled = stream // each run begins another upload
	opts := &fakegcs.Options{NoRunningHash: s.chance(50), NoMD5: s.chance(50)}
	if s.chance(80) { // a slow link, on which requests are under way at a crash
		opts.Rate, opts.Latency = 256<<10<<s.rnd.IntN(5), time.Duration(s.rnd.Int64N(int64(300*time.Millisecond)))
	}
	if s.auto != nil {
		s.auto.serve(opts, s.rnd)
	}
	s.w = newWorld(t, dir, opts)
	defer s.w.close()
	ended, end := context.WithCancel(t.Context())
	defer end()
	s.ended = ended
	s.md5 = !opts.NoMD5
	if s.spool != nil {
		s.spool.start(s.w)
	}
	if s.parts {
		next := s.w.http.Transport
		link := next
		if s.auto != nil {
			link = s.auto.prepare(s.w, s.rnd)
		}
		s.w.http = &http.Client{Transport: s.intruder.watch(s.w, s.duplicate(s.damage(link)))}
		defer func() { s.w.http = &http.Client{Transport: next} }() // for the judge
	}
	s.versions = [][]byte{s.content(s.size())}
	s.path = s.w.file(s.versions[0])
	plan := s.faults()
	s.w.addFaults(plan...)
	for _, f := range plan {
		s.log("plan: %+v", f)
	}
	if s.chance(30) {
		// An outage, some time into the upload.
		begin, length := s.duration(2*time.Minute), s.duration(3*24*time.Hour)
		do := []faults.Action{{Effect: faults.EffectStatus, Status: 503}, {Effect: faults.EffectReset}, {Effect: faults.EffectStatus, Status: 429, RetryAfter: "3600"}}[s.rnd.IntN(3)]
		s.log("an outage in %v for %v: %s", begin, length, do.Effect)
		outage := time.AfterFunc(begin, func() {
			s.w.down(do)
			time.AfterFunc(length, s.w.srv.ClearFaults)
		})
		defer outage.Stop()
	}
	options := func(o *upload.Options) {
		o.ChunkSize = []int64{0, q, q, 2 * q, 3 * q, 100 * q}[s.rnd.IntN(6)]
		o.Window = int(q * (1 + s.rnd.Int64N(3)))
		if s.parts {
			o.Parallel = &upload.Parts{Connections: 2 + s.rnd.IntN(3), MinPart: q * (1 + s.rnd.Int64N(2)), Join: s.by}
		}
		if s.auto != nil {
			o.Parallel = s.auto.parallel(s.rnd)
			if s.auto.limit > 0 {
				o.RateLimit = upload.NewRateLimit(s.auto.limit)
			}
		}
		if s.streamed {
			o.Memory = q
		}
		if s.spool != nil {
			o.Spool = &upload.Spool{Dir: s.w.spoolDir(), Limit: s.spool.limit}
		}
		if s.inParts || s.zipped || s.spool != nil {
			o.Window = int(multipart.MinPart + q*s.rnd.Int64N(4))
		}
		if s.chance(30) {
			o.RetryFor = s.duration(4 * 24 * time.Hour)
		}
	}
	start := time.Now()
	for s.out.Runs < 40 {
		s.out.Runs++
		if s.once(t, stream, options) {
			break
		}
		if s.chance(10) && !stream {
			s.change(t)
		}
		time.Sleep(s.duration(time.Hour))
	}
	s.out.Virtual = time.Since(start)
	switch {
	case s.inParts:
		s.wantNothingLeft(t)
	case s.spool != nil:
		s.w.srv.ClearFaults()
		s.spool.wantNothingLeft(t.Context(), s.w.uploader(options), func(res *upload.Result) { s.wantDone(t, res) })
	}
	s.judge(t)
}

// wantNothingLeft checks that what streams left at the service is on record.
func (s *simulation) wantNothingLeft(t *testing.T) {
	s.w.srv.ClearFaults()
	for pruned, err := range s.w.uploader().Prune(t.Context(), nil) {
		s.out.Left++
		if err != nil || !pruned.Deleted {
			t.Errorf("prune: %+v, %v", pruned, err)
		}
	}
	s.w.wantSaved(0)
	s.w.wantNoParts()
}

func (s *simulation) duration(max time.Duration) time.Duration {
	// Short and long durations are equally likely.
	d := time.Second << s.rnd.IntN(20)
	return min(d, max) + time.Duration(s.rnd.Int64N(int64(time.Second)))
}

// once simulates one process. It reports whether the simulation has ended.
func (s *simulation) once(t *testing.T, stream bool, options func(*upload.Options)) bool {
	ctx, die := context.WithCancel(t.Context())
	defer die()
	p := &process{Store: s.w.store, crash: func() {}}
	if s.spool != nil {
		p.crash, p.lost = s.spool.crash, s.spool.rnd.IntN(2) == 0
		defer s.spool.restore()
	}
	crashes, soon := 50, 10*time.Second
	switch {
	case s.auto != nil:
		crashes = 70
	case s.zipped:
		crashes, soon = 90, 40*time.Second // many while parts are sent
	}
	if s.chance(crashes) {
		// After a crash, nothing more is written or sent.
		at := s.duration(5 * time.Minute)
		if s.chance(70) {
			at = time.Duration(s.rnd.Int64N(int64(soon)))
		}
		crashed := make(chan struct{})
		timer := time.AfterFunc(at, func() {
			defer close(crashed)
			p.crash()
			p.dead.Store(true)
			die()
		})
		defer func() {
			if !timer.Stop() {
				<-crashed
			}
		}()
	} else if s.chance(30) {
		p.saves.Store(s.rnd.Int64N(6) + 1) // dies in a save
		p.die = die
	}
	var waited sync.Map
	var did autoRun
	saved := s.auto != nil && s.w.progress()
	if s.auto != nil {
		s.auto.choose(s.rnd)
	}
	network := s.w.http
	s.w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
		if p.dead.Load() {
			return nil, errDead
		}
		return network.Transport.RoundTrip(req)
	})}
	up := s.w.uploader(options, func(o *upload.Options) {
		o.Store = p
		o.RestartChanged = s.chance(50)
		o.Observer = func(e upload.Event) {
			if e.Delay >= time.Minute {
				waited.Store(e.Delay, true)
			}
			if e.Kind != upload.Progress {
				s.log("%v %v at %d: %s", e.Kind, e.Delay, e.Committed, e.Cause)
			}
			if e.Kind == upload.Restarted {
				s.out.Restarted++
			}
			if s.zipped && e.Kind == upload.Discarded && strings.Contains(e.Cause, "compresses") {
				s.out.Zipped.Other++
				if !s.other && !s.edited {
					t.Errorf("the upload starts over, and every process compressed in the same way: %s", e.Cause)
				}
			}
		}
		did.watch(o)
	})
	s.w.http = network
	if s.auto != nil && s.chance(40) {
		upload.OneIsSlow(up) // an earlier file of this process was
	}
	others := 4
	if s.zipped {
		others = 2
	}
	if s.levels.IntN(others) == 0 {
		upload.SetGzipLevel(up, 1) // another version of the program
		s.other = s.zipped
	}
	content := s.versions[len(s.versions)-1]
	var res *upload.Result
	var err error
	if s.parts && s.chance(5) {
		return s.cancel(ctx, up, p)
	}
	switch {
	case s.spool != nil:
		res, err = s.spool.upload(ctx, up, content, s.spec)
	case stream:
		r := pieces(content)
		if s.inParts && s.levels.IntN(8) == 0 {
			r = unread(pieces(content[:s.levels.IntN(len(content))]))
		}
		res, err = up.Reader(ctx, r, s.spec)
	default:
		res, err = up.File(ctx, s.path, s.spec)
	}
	waited.Range(func(d, _ any) bool { t.Errorf("a wait of %v", d); return true })
	s.out.Resent += res.BytesResent
	s.out.Sent += res.BytesSent
	if res.Resumed {
		s.out.Resumed++
	}
	if s.inParts && res.Parts != nil {
		s.out.InParts++
	}
	if s.zipped {
		s.out.Zipped.ended(res, err)
	}
	s.log("run %d: %v %+v", s.out.Runs, err, res)
	if s.auto != nil {
		s.auto.ended(t, &s.out.Auto, &did, res, err, saved, p.dead.Load())
	}
	if s.intruder.wrote.Load() && errors.Is(err, session.ErrOutcomeUnknown) {
		s.out.Failed++
		s.out.Intruded++
		return true
	}
	switch {
	case p.dead.Load():
		s.out.Crashes++
		return false
	case errors.Is(err, errUnread):
		s.out.Unread++
		if res.Resumable {
			t.Errorf("%+v", res)
		}
		return false
	case s.spool != nil && s.spool.ended(ctx, up, res, err):
		return false
	case err == nil:
		s.out.Done++
		s.wantDone(t, res)
		// What could not be removed is on record.
		s.w.srv.ClearFaults()
		for pruned, err := range s.w.uploader(options).Prune(t.Context(), nil) {
			if err != nil || !pruned.Deleted {
				t.Errorf("prune: %+v, %v", pruned, err)
			}
		}
		s.w.wantSaved(0)
		s.w.wantNoLeftovers()
		s.w.wantNoParts()
		s.w.wantNoSpool()
		return true
	}
	s.out.Failed++
	if !typed(err) {
		t.Errorf("an error without a sentinel: %v", err)
	}
	// An edit that no checkpoint covers is detected by the server's checksum, or by that of
	// an object that a session made before the edit.
	e, _ := errors.AsType[*session.Error](err)
	if errors.Is(err, session.ErrChecksum) && !s.edited || errors.Is(err, session.ErrUnexpectedData) && (!s.edited || e == nil || e.Status != 200) {
		t.Errorf("an error for damage that did not happen: %v", err)
	}
	return stream && !errors.Is(err, session.ErrRetriesExhausted) && !errors.Is(err, session.ErrSessionLost)
}

// wantDone checks the object of an upload that has ended.
func (s *simulation) wantDone(t *testing.T, res *upload.Result) {
	got, err := s.w.srv.ReadObject("bkt", "obj")
	if err != nil || !bytes.Equal(s.decoded(got), s.versions[len(s.versions)-1]) {
		t.Errorf("the upload is done, and the object (%d bytes, %v) is not the source", len(got), err)
	}
	if res.Object == nil || res.Object.CRC32C != checksum.Update(0, got) {
		t.Errorf("Result.Object = %+v", res.Object)
	}
}

// cancel cancels all that is saved: killed streams in parts may have left several. It reports false, because the upload
// is not finished.
func (s *simulation) cancel(ctx context.Context, up *upload.Uploader, p *process) bool {
	s.intruder.canceled = true
	some, all := false, true
	for saved, err := range up.Saved(ctx) {
		if err == nil {
			err = up.Cancel(ctx, saved.ID)
		}
		s.log("cancel: %v", err)
		some, all = true, all && err == nil
	}
	if some && all && !p.dead.Load() {
		s.w.wantSaved(0)
		s.w.wantNoLeftovers()
		s.w.wantNoParts()
		s.w.wantNoSpool()
	}
	return false
}

// decoded returns the content of an object.
func (s *simulation) decoded(object []byte) []byte {
	if !s.spec.Gzip {
		return object
	}
	zr, err := gzip.NewReader(bytes.NewReader(object))
	if err != nil {
		return fmt.Append(nil, err)
	}
	content, err := io.ReadAll(zr)
	if err != nil {
		return fmt.Append(content, err)
	}
	return content
}

func typed(err error) bool {
	for _, kind := range []error{
		session.ErrRetriesExhausted, session.ErrSessionLost, session.ErrSourceChanged, session.ErrProtocol, session.ErrUnexpectedData, session.ErrChecksum,
		session.ErrPermission, session.ErrCredentials, session.ErrNotFound, session.ErrInvalid, session.ErrCanceled, session.ErrPrecondition,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// process is the store of one process. After the process is dead, nothing more is
// written.
type process struct {
	state.Store
	dead  atomic.Bool
	saves atomic.Int64 // dies in the save with this number, counted down
	lost  bool         // that save never succeeds
	crash func()       // called before it dies
	die   func()
}

var errDead = errors.New("the process is dead")

func (p *process) Save(ctx context.Context, doc *state.Upload) error {
	if p.die != nil && p.saves.Add(-1) == 0 {
		if doc.HighWater%2 == 0 && !p.lost { // before or after the rename
			_ = p.Store.Save(ctx, doc)
		}
		p.crash()
		p.dead.Store(true)
		p.die()
	}
	if p.dead.Load() {
		return errDead
	}
	return p.Store.Save(ctx, doc)
}

func (p *process) Delete(ctx context.Context, id string) error {
	if p.dead.Load() {
		return errDead
	}
	return p.Store.Delete(ctx, id)
}

// change changes the source in one of several ways.
func (s *simulation) change(t *testing.T) {
	s.intruder.canceled = true // the upload may start over
	now := bytes.Clone(s.versions[len(s.versions)-1])
	switch s.rnd.IntN(4) {
	case 0: // touched
		s.log("the source is touched")
		require.NoError(t, os.Chtimes(s.path, time.Time{}, time.Unix(1e9+s.rnd.Int64N(1e8), 0)))
		return
	case 1: // edited, and the modification time restored
		if len(now) == 0 {
			return
		}
		at := s.rnd.Int64N(int64(len(now)))
		s.log("byte %d of the source is edited quietly", at)
		s.edited = true
		now[at] ^= 1
		require.NoError(t, editQuietly(s.path, at))
	case 2:
		s.log("the source grows")
		now = append(now, 'x')
		require.NoError(t, appendTo(s.path, "x"))
	case 3:
		s.log("the source is replaced")
		now = s.content(s.size())
		require.NoError(t, errors.Join(os.WriteFile(s.path+".new", now, 0o600), os.Rename(s.path+".new", s.path)))
	}
	s.versions = append(s.versions, now)
}

// judge checks all requests that the server received.
func (s *simulation) judge(t *testing.T) {
	// The object, if it exists, is a complete version of the source.
	if got, err := s.w.srv.ReadObject("bkt", "obj"); err == nil {
		wrote := s.intruder.wrote.Load()
		whole := wrote && string(got) == intruderContent
		if wrote && !whole && !s.intruder.canceled {
			t.Error("the object of another client was replaced after a lost reply")
		}
		for _, v := range s.versions {
			whole = whole || bytes.Equal(v, s.decoded(got))
		}
		if !whole {
			t.Errorf("the object, %d bytes, is no version of the source", len(got))
		}
	}
	// No byte that the server had reported as committed was sent again, unless to another
	// session.
	requests := s.w.srv.Requests()
	// Sort by arrival, because a request of a dead process may end after those of the
	// next process.
	slices.SortStableFunc(requests, func(a, b fakegcs.Request) int { return a.Time.Compare(b.Time) })
	offsets := map[string]int64{}   // committed, by object
	parts := map[string]time.Time{} // when the server had a part of a multipart upload, by its number
	var listed time.Time            // the last list of parts that a client got, or the begin of a process that must get one
	refused := map[string]bool{}    // a reply to a request about the object may mean that the session cannot be used
	for _, r := range requests {
		committed := offsets[r.Object]
		if s.auto != nil {
			listed = s.auto.begunBefore(r.Time, listed)
		}
		s.out.Requests++
		if r.Fault != "" {
			s.out.Faults++
		}
		switch r.Op {
		case faults.OpPartsStart:
			clear(parts)
		case faults.OpPartsList:
			if r.Status == 200 && r.Fault == "" {
				listed = r.Time
			}
		case faults.OpPartsPut:
			_, number, _ := strings.Cut(r.Path, "partNumber=")
			number, damaged := strings.CutSuffix(number, damagedQuery)
			if had, ok := parts[number]; ok && had.Before(listed) && s.md5 && !s.other {
				t.Errorf("part %s was sent again", number)
			}
			if damaged {
				delete(parts, number)
			} else if r.Status == 200 && r.Fault != faults.EffectStatus && r.Fault != faults.EffectStatusAfter {
				parts[number] = r.Time.Add(r.Elapsed)
			}
		case faults.OpStart:
			if committed > 0 && strings.HasPrefix(r.Object, "gcsup-parts/") && !refused[r.Object] {
				t.Errorf("a part with %d committed bytes was begun again: %s", committed, r.Object)
			}
			committed = 0
		case faults.OpPut, faults.OpFinalize:
			var from, last int64
			_, err := fmt.Sscanf(r.ContentRange, "bytes %d-%d", &from, &last)
			if err != nil {
				break
			}
			// There is only one reason to send committed bytes: the server stopped between two
			// boundaries, and the rest of the stream's window is shorter than the 256 KiB that a
			// request must have.
			short := r.Op == faults.OpPut && last+1-from == q && from == chunk.Floor(committed)
			if from < committed && !short {
				t.Errorf("bytes from %d were sent, and the client knew of %d committed ones", from, committed)
			}
		}
		if r.Op == faults.OpQuery && r.Fault == faults.EffectNoRange {
			// A process accepts a lower offset of the server if the previous process died before
			// it saved the higher one.
			committed = 0
		}
		if last, ok := strings.CutPrefix(r.Range, "bytes=0-"); ok && r.Status != 0 {
			if n, err := strconv.ParseInt(last, 10, 64); err == nil {
				committed = n + 1
			}
		}
		offsets[r.Object] = committed
		refused[r.Object] = r.Op != faults.OpStart && (refused[r.Object] || r.Status >= 400 && r.Status < 500)
	}
	// Every retry waits, so that the time bounds the number of requests. A run that does
	// not crash or finish ends within its budget.
	if n := s.out.Requests; n > 400+int(s.out.Virtual/(15*time.Second)) && !s.parts {
		t.Errorf("%d requests in %v", n, s.out.Virtual)
	}
}
