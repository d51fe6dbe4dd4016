package engine_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/backoff"
	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/checksum"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload/internal/atrisk"
	"gcsup/upload/internal/content"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/source"
	"gcsup/upload/internal/stream"
)

// scene is a run, and what happens to it.
type scene struct {
	name    string
	size    int64
	stream  bool          // the source is a stream with windows of 512 KiB
	chunk   int64         // maximum size of a request; 0 means no limit
	rate    int64         // of the link; 0 means no limit
	earlier time.Duration // age of an object with the same bytes; 0 if there is none
	known   bool          // its generation is the precondition, or that there is none
	between []byte        // what another client writes while the run waits
	md5     byte          // added to the MD5 that the caller expects; 0 expects none
	crc32c  *uint32       // that the caller expects
	expect  engine.Expectation
	faults  []faults.Fault
	stalls  int // requests that end after the stall timeout of two minutes
	err     error
	log     string // of all exchanges and waits
}

// TestRun checks which requests a run makes, until the object exists. The tables of package session decide what follows a reply.
func TestRun(t *testing.T) {
	t.Parallel()
	const start, put, query, finalize = faults.OpStart, faults.OpPut, faults.OpQuery, faults.OpFinalize
	const small = "start 200 send; put 0-q 308 q send; finalize q-q+5 200 done"
	const sent = "start 200 send; put 0-2q 308 2q send"
	const last, again = "; finalize 2q-2q+5 200 done", "stat 200 begin; restarted; start 200 send; finalize 0-5 200 done"
	const lost = "start 200 send; finalize lost query; query 410 query; wait 1s; query 410 check; "
	const failed = "start 200 send; finalize 0-5 503 query; wait 1s; query 410 query; wait 2s; query 410 check; "
	corrupt, gone := faults.Action{Effect: faults.EffectCorrupt, Bytes: 1}, effect(faults.EffectNotFound)
	kept := func(n int64) faults.Action {
		return faults.Action{Effect: faults.EffectStatusAfter, Status: 503, Bytes: n}
	}
	ended := func(last faults.Action) []faults.Fault { // the session ends, whatever becomes of the last request
		return append(on(finalize, last), on(query, status(410), status(410))...)
	}
	sum, unconfirmed := checksum.Update(0, data(2*q+5)), errors.New("not yet")
	for _, tt := range []scene{
		{name: "a long request and the tail", size: 3*q + 5, log: "start 200 send; put 0-3q 308 3q send; finalize 3q-3q+5 200 done"},
		{name: "a tail of 256 KiB", size: 2 * q, log: "start 200 send; put 0-q 308 q send; finalize q-2q 200 done"},
		{name: "no long request", size: 5, log: "start 200 send; finalize 0-5 200 done"},
		{name: "nothing", log: "start 200 send; finalize 200 done"},
		{name: "chunks", size: 3*q + 5, chunk: 2 * q, log: sent + "; put 2q-3q 308 3q send; finalize 3q-3q+5 200 done"},

		{name: "the start fails", size: q + 5, faults: on(start, status(503), status(503)), log: "start 503 begin; wait 1s; start 503 begin; wait 2s; " + small},
		{name: "data is refused", size: q + 5, faults: on(put, status(503)), log: "start 200 send; put 0-q 503 query; wait 1s; query 308 send; put 0-q 308 q send; finalize q-q+5 200 done"},
		{name: "some data is kept", size: 2*q + 5, faults: on(put, kept(q)), log: "start 200 send; put 0-2q 503 query; wait 1s; query 308 q send; put q-2q 308 2q send" + last},
		{name: "the connection is cut", size: 2*q + 5, faults: on(put, faults.Action{Effect: faults.EffectCutRequest, Bytes: q + 1}), log: "start 200 send; put lost query; query 308 q send; put q-2q 308 2q send" + last},
		{name: "the service stops reading", size: 2*q + 5, faults: on(put, faults.Action{Effect: faults.EffectStallBody, Bytes: q}), stalls: 1, log: "start 200 send; put lost query; wait 1s; query 308 q send; put q-2q 308 2q send" + last},
		{name: "the service does not reply", size: 2*q + 5, faults: on(put, effect(faults.EffectStallReply)), stalls: 1, log: "start 200 send; put lost query; wait 1s; query 308 2q send" + last},
		{name: "the last reply is lost", size: q + 5, faults: on(finalize, effect(faults.EffectLoseReply)), log: "start 200 send; put 0-q 308 q send; finalize lost query; query 200 done"},
		{name: "the last reply has another checksum", size: q + 5, faults: on(finalize, effect(faults.EffectWrongHash)), log: "start 200 send; put 0-q 308 q send; finalize q-q+5 200 query; wait 1s; query 200 done"},
		{name: "all bytes, and no object", size: q + 5, faults: on(finalize, effect(faults.EffectNotFinal)), log: "start 200 send; put 0-q 308 q send; finalize q-q+5 308 q+5 finish; wait 1s; finalize 200 done"},
		{name: "the session is lost", size: q + 5, faults: on(put, gone), log: "start 200 send; put 0-q 404 query; wait 1s; query 404 begin; restarted; " + small},
		{name: "the session is canceled", size: q + 5, faults: on(put, effect(faults.EffectCanceled)), err: session.ErrCanceled, log: "start 200 send; put 0-q 499 fail"},
		{name: "no permission", size: q + 5, faults: on(start, status(403)), err: session.ErrPermission, log: "start 403 fail"},

		{name: "data is damaged", size: 2*q + 5, chunk: q, faults: on(put, corrupt), log: "start 200 send; put 0-q 308 q begin; restarted; wait 1s; start 200 send; put 0-q 308 q send; put q-2q 308 2q send" + last},
		{name: "data is damaged at the same offset again", size: q + 5, faults: on(put, corrupt, corrupt), log: "start 200 send; put 0-q 308 q begin; restarted; wait 1s; start 200 send; put 0-q 308 q begin; restarted; wait 1s; " + small},
		{name: "the tail is damaged", size: q + 5, faults: on(finalize, corrupt), log: "start 200 send; put 0-q 308 q send; finalize q-q+5 400 begin; restarted; wait 1s; " + small},
		{name: "two requests commit nothing: half the size, then twice that", size: 9 * q, faults: on(put, status(503), status(503)),
			log: "start 200 send; put 0-8q 503 query; wait 1s; query 308 send; put 0-8q 503 query; wait 2s; query 308 send; put 0-4q 308 4q send; put 4q-8q 308 8q send; finalize 8q-9q 200 done"},
		{name: "two requests commit something: the same size", size: 9 * q, faults: on(put, kept(q), kept(3*q)),
			log: "start 200 send; put 0-8q 503 query; wait 1s; query 308 q send; put q-8q 503 query; wait 1s; query 308 3q send; put 3q-8q 308 8q send; finalize 8q-9q 200 done"},

		{name: "a request commits something, and a query fails; the next one commits nothing: the same size", size: 9 * q, faults: append(on(put, kept(q), status(503)), on(query, status(503))...),
			log: "start 200 send; put 0-8q 503 query; wait 1s; query 503 query; wait 2s; query 308 q send; put q-8q 503 query; wait 1s; query 308 q send; put q-8q 308 8q send; finalize 8q-9q 200 done"},

		{name: "windows", stream: true, size: 5*q + 5, log: sent + "; put 2q-4q 308 4q send; finalize 4q-5q+5 200 done"},
		{name: "one window", stream: true, size: q + 5, log: "start 200 send; finalize 0-q+5 200 done"},
		{name: "lost in the first window", stream: true, size: 3 * q, faults: on(put, gone), log: "start 200 send; put 0-2q 404 query; wait 1s; query 404 begin; restarted; " + sent + "; finalize 2q-3q 200 done"},
		{name: "damaged in the first window", stream: true, size: 3 * q, faults: on(put, corrupt), log: "start 200 send; put 0-2q 308 2q begin; restarted; wait 1s; " + sent + "; finalize 2q-3q 200 done"},
		{name: "damaged later", stream: true, size: 5 * q, faults: []faults.Fault{{Match: faults.Match{Op: put, From: 2 * q}, Do: corrupt}}, err: session.ErrChecksum, log: sent + "; put 2q-4q 308 4q fail"},

		{name: "lost at the end, and made", size: 5, faults: ended(effect(faults.EffectLoseReply)), log: lost + "stat 200 done"},
		{name: "lost at the end, and made, with a precondition", size: 5, known: true, faults: ended(effect(faults.EffectLoseReply)), log: "stat 404 absent; " + lost + "stat 200 done"},
		{name: "lost at the end", size: 5, faults: ended(status(503)), log: failed + strings.Replace(again, "200", "404", 1)},
		{name: "lost at the end, and an old object has the same bytes", size: 5, earlier: time.Hour, faults: ended(status(503)), log: failed + again},
		{name: "lost at the end, and the object of the precondition has the same bytes", size: 5, earlier: 1, known: true, faults: ended(status(503)), log: "stat 200 done; " + failed + again},
		{name: "another client was faster", size: 5, known: true, between: data(3), faults: on(finalize, status(503)), err: session.ErrPrecondition,
			log: "stat 404 absent; start 200 send; finalize 0-5 503 query; wait 1s; query 308 send; finalize 0-5 412 check; stat 200 fail"},

		{name: "as expected", size: 2*q + 5, crc32c: &sum, expect: engine.Expectation{Size: new(2*q + 5)}, log: sent + last},
		{name: "shorter than expected", size: 2*q + 5, expect: engine.Expectation{Size: new(2*q + 6)}, err: engine.ErrTruncated, log: sent},
		{name: "longer than expected", size: 2*q + 5, expect: engine.Expectation{Size: new(q)}, err: session.ErrInvalid, log: "start 200 send"},
		{name: "not confirmed", size: 2*q + 5, expect: engine.Expectation{Confirm: func(context.Context) error { return unconfirmed }}, err: unconfirmed, log: sent},
		{name: "another checksum than expected", size: 2*q + 5, crc32c: new(uint32), err: session.ErrChecksum, log: sent},
		{name: "another MD5 than expected", size: 5, md5: 1, err: session.ErrChecksum, log: "start 200 send; finalize 0-5 400"},
		{name: "damaged, with the expected MD5", size: 5, md5: 255, faults: on(finalize, effect(faults.EffectCorrupt)), log: "start 200 send; finalize 0-5 400 begin; restarted; wait 1s; start 200 send; finalize 0-5 200 done"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, fakegcs.Options{Rate: tt.rate, NoMD5: tt.md5 == 0}, func(w *world) { w.play(tt) })
		})
	}
}

// play makes the run of a scene, and checks its result.
func (w *world) play(tt scene) {
	s, ours := session.Spec{Bucket: "bkt", Object: "obj", CRC32C: tt.crc32c}, data(tt.size)
	if tt.md5 != 0 {
		sum := md5.Sum(ours)
		sum[0] += tt.md5 + tt.md5/255 // 255 adds nothing
		s.MD5 = sum[:]
	}
	if tt.known {
		s.IfGenerationMatch = new(int64)
	}
	if tt.earlier > 0 {
		if o := w.insert(ours); tt.known {
			*s.IfGenerationMatch = o.Generation
		}
		time.Sleep(tt.earlier)
	}
	var src content.Source = file(ours)
	if tt.stream {
		stream, err := source.NewStream(bytes.NewReader(ours), new(stream.Memory), int(2*q))
		require.NoError(w.t, err)
		defer stream.Close()
		src = stream
	}
	w.add(tt.faults...)
	if tt.between != nil {
		w.onWait = func() { w.insert(tt.between) }
	}
	w.uplink.ChunkSize = tt.chunk
	r := w.run(s, src, engine.TransferOptions{Expect: tt.expect})
	began := time.Now()
	o, err := r.Drive(w.t.Context())
	w.want(err, tt.err, tt.log)
	if took := time.Since(began); (took >= time.Minute) != (tt.stalls > 0) || took > 130*time.Second {
		w.t.Errorf("took %v", took)
	}
	if tt.err != nil {
		w.wantObject(tt.between)
		return
	}
	w.wantObject(ours)
	if o, err = r.Verify(w.t.Context(), o); err != nil || o.Size != tt.size || o.Name != "obj" {
		w.t.Errorf("verified: %+v, %v", o, err)
	}
	if size, sent, arrived, committed := r.Wire.Pos.Load(); sent != tt.size || arrived != tt.size || committed != tt.size || size != tt.size {
		w.t.Errorf("the position is %d, %d, %d of %d", sent, arrived, committed, size)
	}
	if all, again := w.uplink.Tally.Sent.Load(), w.uplink.Tally.Resent.Load(); all-again != tt.size {
		w.t.Errorf("sent %d bytes, %d of them again", all, again)
	}
	if n := w.count(engine.Started); n != strings.Count(tt.log, "start 200") || r.URI().IsZero() {
		w.t.Errorf("reported %d starts", n)
	}
}

// TestProgressRestoresTheBudget checks that newly committed bytes restore the retries, and that an answered query does not.
// See https://github.com/googleapis/java-storage/issues/3040.
func TestProgressRestoresTheBudget(t *testing.T) {
	t.Parallel()
	var once []faults.Fault // each request fails once before it commits its bytes
	for at := range int64(8) {
		once = append(once, faults.Fault{Match: faults.Match{Op: faults.OpPut, From: at * q, To: at*q + 1}, Do: status(503)})
	}
	for _, tt := range []struct {
		name    string
		faults  []faults.Fault
		rule    engine.RetryRule
		retries int
		err     error
	}{
		{"progress, one retry", once, engine.RetryRule{Retries: 1}, 8, nil},
		{"progress, one second", once, engine.RetryRule{Time: time.Second}, 8, nil},
		{"queries are answered", always(faults.OpPut, status(503)), engine.RetryRule{Retries: 3}, 3, session.ErrRetriesExhausted},
		{"queries are answered, a minute", always(faults.OpPut, status(503)), engine.RetryRule{Time: time.Minute}, 5, session.ErrRetriesExhausted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, fakegcs.Options{Faults: tt.faults, NoMD5: true}, func(w *world) {
				w.uplink.ChunkSize, w.uplink.Budget = q, engine.NewSharedBudget(tt.rule)
				r := w.run(spec, file(data(8*q+5)), engine.TransferOptions{})
				if _, err := r.Drive(w.t.Context()); !errors.Is(err, tt.err) || r.Wire.Retry.Retries != tt.retries {
					t.Errorf("%d retries, %v, want %d\n%v", r.Wire.Retry.Retries, err, tt.retries, w)
				}
				moved, stake := w.uplink.Budget.Progress(), w.uplink.Budget.AtStake()
				if progress := tt.err == nil; moved.IsZero() == progress || (w.committed.Load() > 0) != progress || (stake == 8*q) != progress {
					t.Errorf("progress at %v, %d at stake, %d reports", moved, stake, w.committed.Load())
				}
			})
		})
	}
}

// TestLostSessionsAreReplacedThreeTimes checks the end, and that the restarts of a part name it.
func TestLostSessionsAreReplacedThreeTimes(t *testing.T) {
	t.Parallel()
	for part, cause := range []string{"404 Not Found", "part 1: 404 Not Found"} {
		inBubble(t, fakegcs.Options{NoMD5: true, Faults: always(faults.OpPut, effect(faults.EffectNotFound))}, func(w *world) {
			w.part = part
			_, err := w.run(spec, file(data(2*q)), engine.TransferOptions{}).Drive(w.t.Context())
			if !errors.Is(err, session.ErrSessionLost) || w.count(engine.Restarted) != 3 {
				t.Errorf("%v\n%v", err, w)
			}
			for _, n := range w.notes {
				if n.Part != part || n.Kind == engine.Restarted && !strings.HasPrefix(n.Cause, cause) {
					t.Errorf("note %+v, want part %d", n, part)
				}
			}
			if stake := w.uplink.Budget.AtStake(); stake != q {
				t.Errorf("%d bytes are at stake, want those that were sent", stake)
			}
		})
	}
}

// TestResumedRun checks how a run continues a session of another process, which may have sent more than it saved.
func TestResumedRun(t *testing.T) {
	t.Parallel()
	const size = 3*q + 5
	ours, other := data(size), shared[5:]
	unseekable := errors.New("cannot seek")
	restarted := "; restarted; wait 2s; start 200 send; put 0-3q 308 3q send; finalize 3q-3q+5 200 done"
	damaged := "; restarted; wait 1s; start 200 send; put 0-3q 308 3q send; finalize 3q-3q+5 200 done"
	rest := " 308 2q send; put 2q-3q 308 3q send; finalize 3q-3q+5 200 done"
	for _, tt := range []struct {
		name    string
		size    int64
		opts    fakegcs.Options
		held    []byte // by the service
		sent    int64  // as saved
		seek    error
		resumed int64 // -1 if the session is not resumed
		log     string
	}{
		{"all that was saved", size, fakegcs.Options{}, ours[:2*q], 2 * q, nil, 2 * q, "query" + rest},
		{"more than was saved", size, fakegcs.Options{}, ours[:2*q], 0, nil, 2 * q, "query" + rest},
		{"more than was saved, an MD5", size, fakegcs.Options{NoRunningHash: true}, ours[:2*q], q, nil, 2 * q, "query" + rest},
		{"more than was saved, no checksum", size, fakegcs.Options{NoRunningHash: true, NoMD5: true}, ours[:2*q], q, nil, -1, "query 308 2q query; wait 1s; query 308 2q begin" + restarted},
		{"nothing", size, fakegcs.Options{}, nil, 0, nil, 0, "query 308 send; put 0-3q 308 3q send; finalize 3q-3q+5 200 done"},
		{"nothing, and one request commits nothing: the same size", 9 * q, fakegcs.Options{Faults: on(faults.OpPut, status(503))}, nil, 0, nil, 0,
			"query 308 send; put 0-8q 503 query; wait 1s; query 308 send; put 0-8q 308 8q send; finalize 8q-9q 200 done"},
		{"all bytes", 3 * q, fakegcs.Options{}, ours[:3*q], q, nil, 3 * q, "query 308 3q finish; finalize 200 done"},
		{"other bytes", size, fakegcs.Options{}, other[:2*q], 2 * q, nil, 2 * q, "query 308 2q begin" + damaged},
		{"other bytes, an MD5", size, fakegcs.Options{NoRunningHash: true}, other[:2*q], 2 * q, nil, 2 * q, "query 308 2q begin" + damaged},
		{"more of other bytes", size, fakegcs.Options{}, other[:2*q], q, nil, -1, "query 308 2q query; wait 1s; query 308 2q begin" + restarted},
		{"more of other bytes, an MD5", size, fakegcs.Options{NoRunningHash: true}, other[:2*q], q, nil, -1, "query 308 2q query; wait 1s; query 308 2q begin" + restarted},
		{"more than there is", size, fakegcs.Options{}, shared[:4*q], q, nil, -1, "query 308 4q query; wait 1s; query 308 4q begin" + restarted},
		{"a source that cannot seek", size, fakegcs.Options{}, ours[:2*q], 2 * q, unseekable, -1, "query 308 2q"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, tt.opts, func(w *world) {
				src := file(data(tt.size))
				src.Adopt(source.Saved{})
				resumed := int64(-1)
				from := engine.Resumption{URI: w.session(tt.held), Opened: time.Now(), Seek: func(ctx context.Context, offset int64) error {
					return errors.Join(tt.seek, src.Seek(ctx, offset))
				}, Resumed: func(offset int64) { resumed = offset }}
				r := engine.ResumedRun(w.transfer(spec, src, engine.TransferOptions{}), nil, session.State{Size: src.Total(), Sent: tt.sent, Adopted: true}, from)
				if !r.Unqueried() || r.URI() != from.URI {
					t.Error("the run has another session, or knows what it holds")
				}
				_, err := r.Drive(w.t.Context())
				w.want(err, tt.seek, tt.log)
				if resumed != tt.resumed || r.Unqueried() {
					t.Errorf("resumed at %d, want %d", resumed, tt.resumed)
				}
				if tt.seek == nil {
					w.wantObject(data(tt.size))
				}
			})
		})
	}
}

// session opens a session of unknown size that holds data.
func (w *world) session(data []byte) session.URI {
	w.t.Helper()
	c := w.uplink.Client
	r := c.Start(w.t.Context(), spec, -1)
	if len(data) > 0 {
		if p := c.Put(w.t.Context(), r.URI, chunk.Range{To: int64(len(data))}, -1, bytes.NewReader(data)); p.Committed != int64(len(data)) {
			w.t.Fatalf("%+v", p)
		}
	}
	return r.URI
}

// TestInterruptedRunContinues checks that an interrupted run asks once what is stored, and then continues.
func TestInterruptedRunContinues(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		do     []faults.Action // to the query
		beyond int64
		ok     bool
	}{
		{"answered", nil, 0, true},
		{"no answer", []faults.Action{effect(faults.EffectStall)}, 0, false},
		{"refused", []faults.Action{status(503)}, 0, false},
		{"all that was sent", []faults.Action{effect(faults.EffectWrongRange)}, 0, true},
		{"more than was sent", []faults.Action{effect(faults.EffectWrongRange)}, 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, fakegcs.Options{NoMD5: true, Rate: q}, func(w *world) {
				r := w.run(spec, file(data(6*q)), engine.TransferOptions{})
				ctx, cancel := context.WithTimeoutCause(w.t.Context(), 2500*time.Millisecond, errors.New("enough"))
				defer cancel()
				_, err := r.Drive(ctx)
				w.want(err, context.DeadlineExceeded, "start 200 send; put lost")
				if i, ok := err.(*engine.Interruption); !ok || !i.Of(ctx) || i.Error() != "context deadline exceeded: enough" {
					t.Errorf("error %q", err)
				}
				if r.AskStored(w.t.Context(), time.Second) {
					t.Error("asked although the context is not done")
				}
				time.Sleep(time.Second) // until the server notices the end of the connection
				_, sent, _, _ := r.Wire.Pos.Load()
				for _, do := range tt.do {
					if do.Effect == faults.EffectWrongRange {
						do.Bytes = sent - 2*q + tt.beyond
					}
					w.add(on(faults.OpQuery, do)...)
				}
				began := time.Now()
				ok := r.AskStored(ctx, time.Second)
				if _, _, _, committed := r.Wire.Pos.Load(); ok != tt.ok || time.Since(began) > time.Second || !ok && committed != 0 || ok && tt.do == nil && committed != 2*q {
					t.Errorf("%v after %v: %d bytes are committed of %d\n%v", ok, time.Since(began), committed, sent, w)
				}
				w.log = nil
				_, err = r.Drive(w.t.Context())
				w.want(err, nil, "query 308 2q send; put 2q-5q 308 5q send; finalize 5q-6q 200 done")
				if r.AskStored(ctx, time.Second) {
					t.Error("asked although all bytes are committed")
				}
				w.wantObject(data(6 * q))
			})
		})
	}
}

// recorder is a Recorder that lists its calls.
type recorder struct {
	calls  []string
	handed int64
	err    error // of Sending
}

func (r *recorder) Started(uri session.URI, restarts int) {
	r.calls = append(r.calls, fmt.Sprintf("started %d %v", restarts, !uri.IsZero()))
}

func (r *recorder) Sending(_ context.Context, committed, sent, to int64) error {
	r.calls = append(r.calls, fmt.Sprintf("sending %s %s %s", at(committed), at(sent), at(to)))
	return r.err
}

func (r *recorder) Handed(sent int64) { r.handed = max(r.handed, sent) }

// TestRecordBeforeData checks that the record of a session gets each range before it is sent, and that nothing is sent if it fails.
func TestRecordBeforeData(t *testing.T) {
	t.Parallel()
	full := errors.New("the disk is full")
	for _, tt := range []struct {
		name   string
		err    error
		faults []faults.Fault
		calls  string
		handed int64
	}{
		{"once", nil, nil, "started 0 true; sending 0 0 2q; sending 2q 2q 3q; sending 3q 3q 3q+5", 3 * q},
		{"again", nil, on(faults.OpPut, status(503)), "started 0 true; sending 0 0 2q; sending 0 2q 2q; sending 2q 2q 3q; sending 3q 3q 3q+5", 3 * q},
		{"another session", nil, on(faults.OpPut, effect(faults.EffectNotFound)), "started 0 true; sending 0 0 2q; started 1 true; sending 0 0 2q; sending 2q 2q 3q; sending 3q 3q 3q+5", 3 * q},
		{"not durable", full, nil, "started 0 true; sending 0 0 2q", 0},
	} {
		inBubble(t, fakegcs.Options{NoMD5: true, Faults: tt.faults}, func(w *world) {
			w.uplink.ChunkSize = 2 * q
			rec := &recorder{err: tt.err}
			w.record = rec
			_, err := w.run(spec, file(data(3*q+5)), engine.TransferOptions{}).Drive(w.t.Context())
			if got := strings.Join(rec.calls, "; "); !errors.Is(err, tt.err) || got != tt.calls || rec.handed != tt.handed {
				t.Errorf("%s: %v\ngot  %s, handed %d\nwant %s, handed %d", tt.name, err, got, rec.handed, tt.calls, tt.handed)
			}
			if n := w.srv.Stats().Ops[faults.OpPut]; (n == 0) != (tt.err != nil) {
				t.Errorf("%s: %d requests with data", tt.name, n)
			}
		})
	}
}

// TestRunWaitsForItsRisk checks that the first data of a run waits until the bound of the bytes at risk permits it, and that
// nothing is at risk at the end.
func TestRunWaitsForItsRisk(t *testing.T) {
	t.Parallel()
	for _, patience := range []time.Duration{time.Hour, time.Second} {
		inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
			w.uplink.ChunkSize, w.uplink.AtRisk = q, new(atrisk.Bound)
			large := w.uplink.AtRisk.Insert(atrisk.Least)
			_ = large.Take(w.t.Context())
			time.AfterFunc(time.Minute, large.End)
			ctx, cancel := context.WithTimeout(w.t.Context(), patience)
			defer cancel()
			began := time.Now()
			_, err := w.run(spec, file(data(3*q)), engine.TransferOptions{}).Drive(ctx)
			if _, interrupted := err.(*engine.Interruption); interrupted != (patience < time.Minute) || time.Since(began) != min(patience, time.Minute) {
				t.Errorf("ended after %v: %v", time.Since(began), err)
			}
			if _ = w.uplink.AtRisk.Insert(atrisk.Least).Take(w.t.Context()); time.Since(began) > time.Minute {
				t.Error("the run keeps bytes at risk")
			}
		})
	}
}

// TestRunTakesItsRiskAgain checks that a request that repeats a failed one counts from its beginning, and does not wait for
// the bound, and that nothing is counted while the run waits for the retry.
func TestRunTakesItsRiskAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{NoMD5: true, Latency: time.Second}, func(w *world) {
		w.uplink.AtRisk = new(atrisk.Bound)
		w.add(faults.Fault{Match: faults.Match{Op: faults.OpPut}, Times: 1, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}})
		var counted []bool // while others fill the bound
		sampled := make(chan struct{})
		time.AfterFunc(1500*time.Millisecond, func() { // during the first request with data
			large := w.uplink.AtRisk.Insert(atrisk.Least)
			_ = large.Take(w.t.Context()) // when that has failed
			for range 20 {
				time.Sleep(time.Second / 4)
				sessions, _, _ := w.uplink.AtRisk.Amounts()
				counted = append(counted, sessions > 0)
			}
			large.End()
			close(sampled)
		})
		began := time.Now()
		if _, err := w.run(spec, file(data(3*q)), engine.TransferOptions{}).Drive(w.t.Context()); err != nil || time.Since(began) > 10*time.Second {
			t.Errorf("ended after %v: %v", time.Since(began), err)
		}
		<-sampled
		if waits := slices.Index(counted, false); waits < 0 || !slices.Contains(counted[waits:], true) {
			t.Errorf("counted in each quarter of a second: %v", counted)
		}
	})
}

// TestRunKeepsItsRisk checks that nothing else begins between two requests of a file.
func TestRunKeepsItsRisk(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{NoMD5: true, Latency: time.Second}, func(w *world) {
		w.uplink.ChunkSize, w.uplink.AtRisk = q, new(atrisk.Bound)
		_ = w.uplink.AtRisk.Insert(atrisk.Least - mib).Take(w.t.Context())
		next := make(chan time.Time)
		time.AfterFunc(1500*time.Millisecond, func() { // during the first request with data
			_ = w.uplink.AtRisk.Session().Take(w.t.Context())
			next <- time.Now()
		})
		_, err := w.run(spec, file(data(3*q)), engine.TransferOptions{}).Drive(w.t.Context())
		if ended := time.Now(); err != nil || !(<-next).Equal(ended) {
			t.Errorf("another session began before this one ended: %v", err)
		}
	})
}

// TestChangedSource checks that a source which fails ends the run with its error.
func TestChangedSource(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
		broken := io.NewSectionReader(brokenAt(q), 0, 3*q)
		_, err := w.run(spec, source.FromReaderAt(broken, 3*q, func(int64, int64, int64) {}), engine.TransferOptions{}).Drive(w.t.Context())
		if !errors.Is(err, io.ErrNoProgress) || slices.Contains(w.log, "put 0-2q 308 2q send") {
			t.Errorf("error = %v\n%v", err, w)
		}
		w.wantObject(nil)
	})
}

// brokenAt is a file that cannot be read from an offset on.
type brokenAt int64

func (b brokenAt) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > int64(b) {
		return 0, io.ErrNoProgress
	}
	return len(p), nil
}

// sendingHook is a Recorder that calls a function before each request with data.
type sendingHook struct {
	engine.Unrecorded
	call func(committed int64)
}

func (h sendingHook) Sending(_ context.Context, committed, _, _ int64) error {
	h.call(committed)
	return nil
}

// TestStartsThatAreSuccesses checks which replies of a run that commit nothing end a row of failures, after which the breaker opens:
// only a session that opens after a failure. One that opens at the first try, and a query that is answered, are possible while data is
// refused.
func TestStartsThatAreSuccesses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		faults []faults.Fault
		before bool // another upload fails before the run
		opens  bool // the breaker, if another upload fails before the last request with data
	}{
		{"a start at the first try", nil, true, true},
		{"a start after a failure", on(faults.OpStart, status(503)), false, false},
		{"a query after a failure", on(faults.OpPut, status(503)), false, true},
	} {
		inBubble(t, fakegcs.Options{Faults: tt.faults}, func(w *world) {
			w.uplink.Breaker = &backoff.Breaker{Threshold: 2}
			fail := func() {
				other, failed := w.requester(spec).Retry, unavailable
				go func() {
					defer other.Close()
					_ = other.Wait(w.t.Context(), &failed, 0)
				}()
				synctest.Wait()
			}
			if tt.before {
				fail()
			}
			open := false
			w.record = sendingHook{call: func(committed int64) {
				if committed == 0 {
					fail()
					open = w.uplink.Breaker.Open()
				}
			}}
			if _, err := w.run(spec, file(data(q+5)), engine.TransferOptions{}).Drive(w.t.Context()); err != nil || open != tt.opens {
				t.Errorf("%s: the breaker is open: %v, %v", tt.name, open, err)
			}
			time.Sleep(time.Minute) // until the others have ended
		})
	}
}
