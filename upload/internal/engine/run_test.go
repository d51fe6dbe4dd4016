package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/session"
	"gcsup/upload/internal/atrisk"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/source"
)

// TestRun checks which requests a run makes after each reply, until the object exists. The tables of package session decide.
func TestRun(t *testing.T) {
	t.Parallel()
	const start, put, query, finalize = faults.OpStart, faults.OpPut, faults.OpQuery, faults.OpFinalize
	kept := func(n int64) faults.Action {
		return faults.Action{Effect: faults.EffectStatusAfter, Status: 503, Bytes: n}
	}
	for _, tt := range []struct {
		name   string
		size   int64
		chunk  int64
		faults []faults.Fault
		err    error
		log    string
	}{
		{"a long request and the tail", 3*q + 5, 0, nil, nil, "start 200 send; put 0-3q 308 3q send; finalize 3q-3q+5 200 done"},
		{"a tail of 256 KiB", 2 * q, 0, nil, nil, "start 200 send; put 0-q 308 q send; finalize q-2q 200 done"},
		{"no long request", 5, 0, nil, nil, "start 200 send; finalize 0-5 200 done"},
		{"nothing", 0, 0, nil, nil, "start 200 send; finalize 200 done"},
		{"chunks", 3*q + 5, 2 * q, nil, nil, "start 200 send; put 0-2q 308 2q send; put 2q-3q 308 3q send; finalize 3q-3q+5 200 done"},
		{"the start fails", q + 5, 0, on(start, status(503), status(503)), nil,
			"start 503 begin; wait 1s; start 503 begin; wait 2s; start 200 send; put 0-q 308 q send; finalize q-q+5 200 done"},
		{"data is refused", q + 5, 0, on(put, status(503)), nil,
			"start 200 send; put 0-q 503 query; wait 1s; query 308 send; put 0-q 308 q send; finalize q-q+5 200 done"},
		{"some data is kept", 2*q + 5, 0, on(put, kept(q)), nil,
			"start 200 send; put 0-2q 503 query; wait 1s; query 308 q send; put q-2q 308 2q send; finalize 2q-2q+5 200 done"},
		{"the connection is cut", 2*q + 5, 0, on(put, faults.Action{Effect: faults.EffectCutRequest, Bytes: q + 1}), nil,
			"start 200 send; put lost query; query 308 q send; put q-2q 308 2q send; finalize 2q-2q+5 200 done"},
		{"the last reply is lost", q + 5, 0, on(finalize, effect(faults.EffectLoseReply)), nil,
			"start 200 send; put 0-q 308 q send; finalize lost query; query 200 done"},
		{"the last reply has another checksum", q + 5, 0, on(finalize, effect(faults.EffectWrongHash)), nil,
			"start 200 send; put 0-q 308 q send; finalize q-q+5 200 query; wait 1s; query 200 done"},
		{"all bytes, and no object", q + 5, 0, on(finalize, effect(faults.EffectNotFinal)), nil,
			"start 200 send; put 0-q 308 q send; finalize q-q+5 308 q+5 finish; wait 1s; finalize 200 done"},
		{"the session is lost", q + 5, 0, on(put, effect(faults.EffectNotFound)), nil,
			"start 200 send; put 0-q 404 query; wait 1s; query 404 begin; restarted; start 200 send; put 0-q 308 q send; finalize q-q+5 200 done"},
		{"the session is canceled", q + 5, 0, on(put, effect(faults.EffectCanceled)), session.ErrCanceled, "start 200 send; put 0-q 499 fail"},
		{"no permission", q + 5, 0, on(start, status(403)), session.ErrPermission, "start 403 fail"},
		{"data is damaged", 2*q + 5, q, on(put, effect(faults.EffectCorrupt)), nil,
			"start 200 send; put 0-q 308 q begin; restarted; wait 1s; start 200 send; put 0-q 308 q send; put q-2q 308 2q send; finalize 2q-2q+5 200 done"},
		{"data is damaged at the same offset again", q + 5, q, on(put, effect(faults.EffectCorrupt), effect(faults.EffectCorrupt)), nil,
			"start 200 send; put 0-q 308 q begin; restarted; wait 1s; start 200 send; put 0-q 308 q begin; restarted; wait 1s; start 200 send; put 0-q 308 q send; finalize q-q+5 200 done"},
		{"the tail is damaged", q + 5, 0, on(finalize, faults.Action{Effect: faults.EffectCorrupt, Bytes: 1}), nil,
			"start 200 send; put 0-q 308 q send; finalize q-q+5 400 begin; restarted; wait 1s; start 200 send; put 0-q 308 q send; finalize q-q+5 200 done"},
		{"two requests commit nothing: half the size, then twice that", 9 * q, 0, on(put, status(503), status(503)), nil,
			"start 200 send; put 0-8q 503 query; wait 1s; query 308 send; put 0-8q 503 query; wait 2s; query 308 send; put 0-4q 308 4q send; put 4q-8q 308 8q send; finalize 8q-9q 200 done"},
		{"two requests commit something: the same size", 9 * q, 0, on(put, kept(q), kept(3*q)), nil,
			"start 200 send; put 0-8q 503 query; wait 1s; query 308 q send; put q-8q 503 query; wait 1s; query 308 3q send; put 3q-8q 308 8q send; finalize 8q-9q 200 done"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
				w.add(tt.faults...)
				w.uplink.ChunkSize = tt.chunk
				r := w.run(file(data(tt.size)), engine.TransferOptions{})
				o, err := r.Drive(w.t.Context())
				w.want(err, tt.err, tt.log)
				if tt.err != nil {
					return
				}
				w.wantObject(data(tt.size))
				if o, err = r.Verify(w.t.Context(), o); err != nil || o.Size != tt.size || o.Name != "obj" {
					t.Errorf("verified: %+v, %v", o, err)
				}
				size, sent, arrived, committed := r.Wire.Pos.Load()
				if size != tt.size || sent != tt.size || arrived != tt.size || committed != tt.size {
					t.Errorf("the position is %d, %d, %d of %d", sent, arrived, committed, size)
				}
				tally := w.uplink.Tally
				if all, again := tally.Sent.Load(), tally.Resent.Load(); all-again != tt.size {
					t.Errorf("sent %d bytes, %d of them again", all, again)
				}
				if started := w.count(engine.Started); started != strings.Count(tt.log, "start 200") || r.URI().IsZero() {
					t.Errorf("reported %d starts", started)
				}
			})
		})
	}
}

// TestRunOfAStream checks a source of unknown size, whose committed bytes cannot be sent again.
func TestRunOfAStream(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		size   int64
		faults []faults.Fault
		err    error
		log    string
	}{
		{"windows", 5*q + 5, nil, nil, "start 200 send; put 0-2q 308 2q send; put 2q-4q 308 4q send; finalize 4q-5q+5 200 done"},
		{"one window", q + 5, nil, nil, "start 200 send; finalize 0-q+5 200 done"},
		{"lost in the first window", 3 * q, on(faults.OpPut, effect(faults.EffectNotFound)), nil,
			"start 200 send; put 0-2q 404 query; wait 1s; query 404 begin; restarted; start 200 send; put 0-2q 308 2q send; finalize 2q-3q 200 done"},
		{"damaged in the first window", 3 * q, on(faults.OpPut, effect(faults.EffectCorrupt)), nil,
			"start 200 send; put 0-2q 308 2q begin; restarted; wait 1s; start 200 send; put 0-2q 308 2q send; finalize 2q-3q 200 done"},
		{"damaged later", 5 * q, []faults.Fault{{Match: faults.Match{Op: faults.OpPut, From: 2 * q}, Do: faults.Action{Effect: faults.EffectCorrupt, Bytes: 1}}}, session.ErrChecksum,
			"start 200 send; put 0-2q 308 2q send; put 2q-4q 308 4q fail"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
				w.add(tt.faults...)
				src, err := source.NewStream(bytes.NewReader(data(tt.size)), new(chunk.Memory), int(2*q))
				if err != nil {
					t.Fatal(err)
				}
				defer src.Close()
				r := w.run(src, engine.TransferOptions{})
				_, err = r.Drive(w.t.Context())
				w.want(err, tt.err, tt.log)
				if tt.err == nil {
					w.wantObject(data(tt.size))
				}
			})
		})
	}
}

// TestRunFollowsTheRate checks that requests have the size that CommitTime allows at the rate of the link.
func TestRunFollowsTheRate(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{NoMD5: true, Rate: q}, func(w *world) {
		w.uplink.CommitTime = 4500 * time.Millisecond
		_, err := w.run(file(data(6*q)), engine.TransferOptions{}).Drive(w.t.Context())
		w.want(err, nil, "start 200 send; put 0-q 308 q send; put q-5q 308 5q send; finalize 5q-6q 200 done")
	})
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
		{"progress, one retry", once, engine.RetryRule{Tries: 1}, 8, nil},
		{"progress, one second", once, engine.RetryRule{Time: time.Second}, 8, nil},
		{"queries are answered", always(faults.OpPut, status(503)), engine.RetryRule{Tries: 3}, 3, session.ErrRetriesExhausted},
		{"queries are answered, a minute", always(faults.OpPut, status(503)), engine.RetryRule{Time: time.Minute}, 5, session.ErrRetriesExhausted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, fakegcs.Options{Faults: tt.faults, NoMD5: true}, func(w *world) {
				w.uplink.ChunkSize, w.uplink.Budget = q, engine.NewBudget(tt.rule)
				r := w.run(file(data(8*q+5)), engine.TransferOptions{})
				if _, err := r.Drive(w.t.Context()); !errors.Is(err, tt.err) || r.Wire.Retry.Retries != tt.retries {
					t.Errorf("%d retries, %v, want %d\n%v", r.Wire.Retry.Retries, err, tt.retries, w)
				}
				moved, stake := w.uplink.Budget.Progress(), w.uplink.Budget.AtStake()
				if progress := tt.err == nil; moved.IsZero() == progress || (w.committed > 0) != progress || (stake == 8*q) != progress {
					t.Errorf("progress at %v, %d at stake, %d reports", moved, stake, w.committed)
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
			q := engine.NewRequester(w.uplink, part, engine.NewPosition(-1)).To(spec)
			_, err := engine.NewRun(engine.NewTransfer(q, file(data(2<<18)), engine.Unrecorded{}, engine.TransferOptions{}), nil, session.State{Size: 2 << 18}).Drive(w.t.Context())
			if !errors.Is(err, session.ErrSessionLost) || w.count(engine.Restarted) != 3 {
				t.Errorf("%v\n%v", err, w)
			}
			for _, n := range w.notes {
				if n.Part != part || n.Kind == engine.Restarted && !strings.HasPrefix(n.Cause, cause) {
					t.Errorf("note %+v, want part %d", n, part)
				}
			}
			if stake := w.uplink.Budget.AtStake(); stake != 1<<18 {
				t.Errorf("%d bytes are at stake, want those that were sent", stake)
			}
		})
	}
}

// TestLostAtTheEnd checks that a run which lost its session after the last request looks whether that made the object: an older one with the same
// bytes is not its own.
func TestLostAtTheEnd(t *testing.T) {
	t.Parallel()
	const lost = "start 200 send; finalize lost query; query 410 query; wait 1s; query 410 check; "
	const failed = "start 200 send; finalize 0-5 503 query; wait 1s; query 410 query; wait 2s; query 410 check; "
	const again = "stat 200 begin; restarted; start 200 send; finalize 0-5 200 done"
	for _, tt := range []struct {
		name    string
		earlier bool // there is an object with the same bytes
		age     time.Duration
		known   bool // its generation is the precondition
		last    faults.Action
		log     string
	}{
		{"made", false, 0, false, effect(faults.EffectLoseReply), lost + "stat 200 done"},
		{"not made", false, 0, false, status(503), failed + strings.Replace(again, "200", "404", 1)},
		{"not made, an old object", true, time.Hour, false, status(503), failed + again},
		{"not made, the object of the precondition", true, 0, true, status(503), "stat 200 done; " + failed + again},
	} {
		inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
			s := spec
			if tt.earlier {
				if o := w.insert(data(5)); tt.known {
					s.IfGenerationMatch = &o.Generation
				}
				time.Sleep(tt.age)
			}
			w.add(append(on(faults.OpFinalize, tt.last), on(faults.OpQuery, status(410), status(410))...)...)
			transfer := engine.NewTransfer(w.requester(s), file(data(5)), engine.Unrecorded{}, engine.TransferOptions{})
			_, err := engine.NewRun(transfer, new(engine.Precondition), session.State{Size: 5}).Drive(w.t.Context())
			w.want(err, nil, tt.log)
		})
	}
}

// TestResumedRun checks how a run continues a session of another process, which may have sent more than it saved.
func TestResumedRun(t *testing.T) {
	t.Parallel()
	ours, other := data(3*q+5), shared[5:]
	unseekable := errors.New("cannot seek")
	restarted := "; restarted; wait 2s; start 200 send; put 0-3q 308 3q send; finalize 3q-3q+5 200 done"
	damaged := "; restarted; wait 1s; start 200 send; put 0-3q 308 3q send; finalize 3q-3q+5 200 done"
	rest := " 308 2q send; put 2q-3q 308 3q send; finalize 3q-3q+5 200 done"
	for _, tt := range []struct {
		name    string
		opts    fakegcs.Options
		held    []byte // by the service
		sent    int64  // as saved
		seek    error
		resumed int64 // -1 if the session is not resumed
		log     string
	}{
		{"all that was saved", fakegcs.Options{}, ours[:2*q], 2 * q, nil, 2 * q, "query" + rest},
		{"more than was saved", fakegcs.Options{}, ours[:2*q], 0, nil, 2 * q, "query" + rest},
		{"more than was saved, an MD5", fakegcs.Options{NoRunningHash: true}, ours[:2*q], q, nil, 2 * q, "query" + rest},
		{"more than was saved, no checksum", fakegcs.Options{NoRunningHash: true, NoMD5: true}, ours[:2*q], q, nil, -1, "query 308 2q query; wait 1s; query 308 2q begin" + restarted},
		{"nothing", fakegcs.Options{}, nil, 0, nil, 0, "query 308 send; put 0-3q 308 3q send; finalize 3q-3q+5 200 done"},
		{"other bytes", fakegcs.Options{}, other[:2*q], 2 * q, nil, 2 * q, "query 308 2q begin" + damaged},
		{"other bytes, an MD5", fakegcs.Options{NoRunningHash: true}, other[:2*q], 2 * q, nil, 2 * q, "query 308 2q begin" + damaged},
		{"more of other bytes", fakegcs.Options{}, other[:2*q], q, nil, -1, "query 308 2q query; wait 1s; query 308 2q begin" + restarted},
		{"more than there is", fakegcs.Options{}, shared[:4*q], q, nil, -1, "query 308 4q query; wait 1s; query 308 4q begin" + restarted},
		{"a source that cannot seek", fakegcs.Options{}, ours[:2*q], 2 * q, unseekable, -1, "query 308 2q"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, tt.opts, func(w *world) {
				src := file(ours)
				src.Adopt(source.Saved{})
				resumed := int64(-1)
				from := engine.Resumption{URI: w.session(tt.held), Opened: time.Now(), Seek: func(ctx context.Context, offset int64) error {
					return errors.Join(tt.seek, src.Seek(ctx, offset))
				}, Resumed: func(offset int64) { resumed = offset }}
				r := engine.ResumedRun(w.transfer(src, engine.TransferOptions{}), nil, session.State{Size: src.Total(), Sent: tt.sent, Adopted: true}, from)
				if !r.Unqueried() || r.URI() != from.URI {
					t.Error("the run has another session, or knows what it holds")
				}
				_, err := r.Drive(w.t.Context())
				w.want(err, tt.seek, tt.log)
				if resumed != tt.resumed || r.Unqueried() {
					t.Errorf("resumed at %d, want %d", resumed, tt.resumed)
				}
				if tt.seek == nil {
					w.wantObject(ours)
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
				r := w.run(file(data(6*q)), engine.TransferOptions{})
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

// record is a record that lists its calls.
type record struct {
	calls  []string
	handed int64
	err    error // of Sending
}

func (r *record) Started(uri session.URI, restarts int) {
	r.calls = append(r.calls, fmt.Sprintf("started %d %v", restarts, !uri.IsZero()))
}

func (r *record) Sending(_ context.Context, committed, sent, to int64) error {
	r.calls = append(r.calls, fmt.Sprintf("sending %s %s %s", at(committed), at(sent), at(to)))
	return r.err
}

func (r *record) Handed(sent int64) { r.handed = max(r.handed, sent) }

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
			rec := &record{err: tt.err}
			src := file(data(3*q + 5))
			_, err := engine.NewRun(engine.NewTransfer(w.requester(spec), src, rec, engine.TransferOptions{}), nil, session.State{Size: src.Total()}).Drive(w.t.Context())
			if got := strings.Join(rec.calls, "; "); !errors.Is(err, tt.err) || got != tt.calls || rec.handed != tt.handed {
				t.Errorf("%s: %v\ngot  %s, handed %d\nwant %s, handed %d", tt.name, err, got, rec.handed, tt.calls, tt.handed)
			}
			if n := w.srv.Stats().Ops[faults.OpPut]; (n == 0) != (tt.err != nil) {
				t.Errorf("%s: %d requests with data", tt.name, n)
			}
		})
	}
}

// TestRunTakesItsRiskOnce checks that the first data of a run waits until the bound of the bytes at risk permits it.
func TestRunTakesItsRiskOnce(t *testing.T) {
	t.Parallel()
	for _, patience := range []time.Duration{time.Hour, time.Second} {
		inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
			w.uplink.ChunkSize, w.uplink.AtRisk = q, new(atrisk.Bound)
			large := w.uplink.AtRisk.Insert(atrisk.Least)
			_ = large.Take(w.t.Context())
			time.AfterFunc(time.Minute, large.End)
			ctx, cancel := context.WithTimeout(w.t.Context(), patience)
			defer cancel()
			_, err := w.run(file(data(3*q)), engine.TransferOptions{}).Drive(ctx)
			began := time.Now()
			if patience < time.Minute {
				if _, ok := err.(*engine.Interruption); !ok {
					t.Errorf("error = %v", err)
				}
				return
			}
			if began.Second() != 0 || err != nil { // the bubble begins at midnight
				t.Errorf("ended at %v: %v", began, err)
			}
			// Nothing is at risk any longer: a request of the whole bound begins at once.
			if _ = w.uplink.AtRisk.Insert(atrisk.Least).Take(w.t.Context()); time.Since(began) > 0 {
				t.Error("the run keeps bytes at risk")
			}
		})
	}
}

// TestExpectationsBeforeTheObject checks that a source which is not as the caller expects makes no object, and that the
// last request is not sent.
func TestExpectationsBeforeTheObject(t *testing.T) {
	t.Parallel()
	size := 2*q + 5
	unconfirmed := errors.New("not yet")
	sum, wrong := chunk.Update(0, data(size)), uint32(1)
	const sent = "start 200 send; put 0-2q 308 2q send"
	for _, tt := range []struct {
		name    string
		size    int64
		confirm error
		crc32c  *uint32
		faults  []faults.Fault
		err     error
		log     string
	}{
		{"as expected", size, nil, &sum, nil, nil, sent + "; finalize 2q-2q+5 200 done"},
		{"shorter", size + 1, nil, nil, nil, engine.ErrTruncated, sent},
		{"longer", q, nil, nil, nil, session.ErrInvalid, "start 200 send"},
		{"not confirmed", size, unconfirmed, nil, nil, unconfirmed, sent},
		{"another checksum", size, nil, &wrong, nil, session.ErrChecksum, sent},
		{"not confirmed, all bytes are committed", size, unconfirmed, nil, on(faults.OpFinalize, effect(faults.EffectNotFinal)), unconfirmed, sent + "; finalize 2q-2q+5 308 2q+5 finish; wait 1s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, fakegcs.Options{NoMD5: true, Faults: tt.faults}, func(w *world) {
				calls := 0
				expect := engine.Expectation{Size: &tt.size, Confirm: func(context.Context) error {
					if calls++; calls == 1 && tt.faults != nil {
						return nil // before the first finalize
					}
					return tt.confirm
				}}
				x := w.requester(session.Spec{Bucket: "bkt", Object: "obj", CRC32C: tt.crc32c})
				src := file(data(size))
				_, err := engine.NewRun(engine.NewTransfer(x, src, engine.Unrecorded{}, engine.TransferOptions{Expect: expect}), nil, session.State{Size: size}).Drive(w.t.Context())
				w.want(err, tt.err, tt.log)
				if tt.err == nil {
					return
				}
				w.wantObject(nil)
			})
		})
	}
}

// TestRefusedMD5 checks that a source without the expected MD5 is not sent again.
func TestRefusedMD5(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		md5    byte // of the expected sum
		faults []faults.Fault
		err    error
		log    string
	}{
		{0, nil, session.ErrChecksum, "start 200 send; finalize 0-5 400"},
		{1, on(faults.OpFinalize, effect(faults.EffectCorrupt)), nil, "start 200 send; finalize 0-5 400 begin; restarted; wait 1s; start 200 send; finalize 0-5 200 done"},
	} {
		inBubble(t, fakegcs.Options{Faults: tt.faults}, func(w *world) {
			sum, err := source.MD5(bytes.NewReader(data(5)), 5)
			if err != nil {
				t.Fatal(err)
			}
			sum[0] += 1 - tt.md5
			x := w.requester(session.Spec{Bucket: "bkt", Object: "obj", MD5: sum[:]})
			_, err = engine.NewRun(engine.NewTransfer(x, file(data(5)), engine.Unrecorded{}, engine.TransferOptions{}), nil, session.State{Size: 5}).Drive(w.t.Context())
			w.want(err, tt.err, tt.log)
		})
	}
}

// TestChangedSource checks that a source which fails ends the run with its error.
func TestChangedSource(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
		broken := io.NewSectionReader(brokenAt(q), 0, 3*q)
		_, err := w.run(source.FromReaderAt(broken, 3*q, func(int64, int64, int64) {}), engine.TransferOptions{}).Drive(w.t.Context())
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
