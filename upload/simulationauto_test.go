package upload_test

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/multipart"
	"gcsup/internal/require"
	"gcsup/session/state"
	"gcsup/upload"
)

// autoSimulation is what a seed with Parts.Auto has in addition to the others. Each of its processes
// sends or resumes the file by Parts.Auto, by Parts, or over one connection.
type autoSimulation struct {
	link    autoLink
	minFile int64 // smaller files are not sent in parts
	minPart int64
	limit   int64   // bytes per second of a rate limit; 0 is none
	by      autoWay // of this process
	last    autoWay // of the process before
	began   []time.Time
}

// autoLink is what the link does. Parts.Auto has a decision for each.
type autoLink int

const (
	slowLink    autoLink = iota // limits each connection
	fastLink                    // limits nothing
	burstLink                   // limits nothing at first, and then each connection
	stalledLink                 // limits each connection, and stands still from time to time
	sharedLink                  // limits all connections together
	autoLinks
)

// autoWay is how a process sends the file.
type autoWay int

const (
	byAuto autoWay = iota
	byNumber
	byOne // over one connection, unless what is saved is in parts
)

// autoOutcome counts the decisions of Parts.Auto for new uploads, and the uploads that a process resumed.
type autoOutcome struct {
	Divided   int // sent in parts from the first byte
	Undivided int // sent over one connection
	Changed   int // begun over one connection, and then sent in another way in the same process

	AutoByAuto  int // begun by Parts.Auto, and resumed by it
	AutoByOther int // begun by Parts.Auto, and resumed by Parts or over one connection
	OtherByAuto int // begun by Parts or over one connection, and resumed by Parts.Auto
}

func (o *autoOutcome) add(p autoOutcome) {
	o.Divided += p.Divided
	o.Undivided += p.Undivided
	o.Changed += p.Changed
	o.AutoByAuto += p.AutoByAuto
	o.AutoByOther += p.AutoByOther
	o.OtherByAuto += p.OtherByAuto
}

// check fails if the seeds did not have every decision and every kind of resumption.
func (o *autoOutcome) check(t *testing.T, seeds uint64) {
	t.Helper()
	if seeds >= 32 && (o.Divided == 0 || o.Undivided == 0 || o.Changed == 0) {
		t.Errorf("Parts.Auto did not make all decisions: %+v", *o)
	}
	if seeds >= 200 && (o.AutoByAuto == 0 || o.AutoByOther == 0 || o.OtherByAuto == 0) {
		t.Errorf("not all kinds of uploads were resumed: %+v", *o)
	}
}

// discardMost is the most that Parts.Auto discards of a session that shows a slow connection.
const discardMost = 16 * mib

// newAuto returns what seed adds. The seeds of Parts.Auto are eight apart, and have the links in turn.
func newAuto(seed uint64, rnd *rand.Rand) *autoSimulation {
	a := &autoSimulation{link: autoLink(seed / 8 % uint64(autoLinks)), minFile: 2 * mib, minPart: q << rnd.IntN(4)}
	if rnd.IntN(10) == 0 {
		a.limit = 8 << 20
	}
	return a
}

// size returns the size of a file. On a link that is fast at first, it is enough for a decision.
func (a *autoSimulation) size(rnd *rand.Rand) int64 {
	switch {
	case rnd.IntN(10) == 0:
		return rnd.Int64N(a.minFile)
	case a.link == fastLink || a.link == burstLink:
		return discardMost + 1 + rnd.Int64N(4*mib)
	}
	return multipart.MinPart + rnd.Int64N(7*mib)
}

// rate returns the bytes per second of a slow connection. One takes up to a minute for the file.
func (a *autoSimulation) rate(rnd *rand.Rand) int64 { return 128 << 10 << rnd.IntN(5) }

// serve sets the options of the server.
func (a *autoSimulation) serve(opts *fakegcs.Options, rnd *rand.Rand) {
	opts.Rate, opts.Latency = 0, 0
	if rnd.IntN(2) == 0 {
		opts.Latency = time.Duration(rnd.Int64N(int64(300 * time.Millisecond)))
	}
	switch a.link {
	case slowLink:
		opts.Rate = a.rate(rnd)
	case sharedLink:
		opts.TotalRate = 2 * a.rate(rnd)
	}
}

// operations are those at which faults happen.
func (a *autoSimulation) operations() []faults.Op {
	return []faults.Op{
		faults.OpStart, faults.OpPut, faults.OpPut, faults.OpQuery, faults.OpFinalize, faults.OpGet, "",
		faults.OpPartsStart, faults.OpPartsPut, faults.OpPartsPut, faults.OpPartsList, faults.OpPartsComplete, faults.OpPartsAbort,
		faults.OpCompose, faults.OpDelete, faults.OpBucketGet, faults.OpBucketPermissions, faults.OpNotificationList,
	}
}

// prepare makes the bucket one that does not suit temporary objects, or not. It returns a transport
// over the link.
func (a *autoSimulation) prepare(w *world, rnd *rand.Rand) http.RoundTripper {
	if rnd.IntN(6) == 0 {
		w.patchBucket([]string{`{"retentionPolicy":{"retentionPeriod":"1"}}`, `{"defaultEventBasedHold":true}`, `{"storageClass":"NEARLINE"}`}[rnd.IntN(3)])
	}
	next := w.http.Transport
	if a.link != burstLink && a.link != stalledLink {
		return next
	}
	l := &changingLink{next: next, rate: a.rate(rnd)}
	if a.link == burstLink {
		l.burst = rnd.Int64N(2 * discardMost)
	} else {
		for range 1 + rnd.IntN(4) {
			from := time.Now().Add(time.Duration(rnd.Int64N(int64(30 * time.Second))))
			l.stalls = append(l.stalls, stall{from, from.Add(time.Second << rnd.IntN(9))})
		}
	}
	return l
}

// choose sets how the next process sends the file.
func (a *autoSimulation) choose(rnd *rand.Rand) {
	a.last, a.by = a.by, []autoWay{byAuto, byAuto, byAuto, byNumber, byOne}[rnd.IntN(5)]
	a.began = append(a.began, time.Now())
}

// begunBefore returns when the last process before t began, or since, if that is later.
func (a *autoSimulation) begunBefore(t, since time.Time) time.Time {
	for _, began := range a.began {
		if began.Before(t) && began.After(since) {
			since = began
		}
	}
	return since
}

// parallel returns the option for the process.
func (a *autoSimulation) parallel(rnd *rand.Rand) *upload.Parts {
	way := []upload.JoinBy{upload.ByEither, upload.ByCompose, upload.ByMultipart}[rnd.IntN(3)]
	switch a.by {
	case byAuto:
		return upload.AutoPartsFrom([]int{0, 0, 2, 5}[rnd.IntN(4)], a.minFile, a.minPart).Joined(way)
	case byNumber:
		return &upload.Parts{Connections: 2 + rnd.IntN(3), MinPart: max(a.minPart, mib), Join: way}
	}
	return nil
}

// autoRun is what one process did.
type autoRun struct {
	mu        sync.Mutex
	whole     bool  // it sent bytes to the object itself
	parts     bool  // it sent bytes of parts
	reported  bool  // an event said that what was saved is not used, or was lost
	divided   int   // events
	discarded int64 // the most bytes that one of these events discarded
}

// watch makes the process of o report what it does.
func (r *autoRun) watch(o *upload.Options) {
	observe := o.Observer
	o.Observer = func(e upload.Event) {
		observe(e)
		r.mu.Lock()
		defer r.mu.Unlock()
		switch e.Kind {
		case upload.Discarded, upload.Restarted:
			r.reported = true
		case upload.Divided:
			r.divided++
			r.discarded = max(r.discarded, -e.CommittedDelta)
		}
	}
	o.Exchange = func(x upload.Exchange) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if x.Sent > 0 {
			r.parts = r.parts || x.Part > 0
			r.whole = r.whole || x.Part == 0
		}
	}
}

// progress reports whether a saved upload has committed bytes.
func (w *world) progress() bool {
	w.t.Helper()
	ids, err := w.store.List(w.t.Context())
	require.NoError(w.t, err)
	return slices.ContainsFunc(ids, func(id string) bool {
		doc, err := w.store.Load(w.t.Context(), id)
		require.NoError(w.t, err)
		if doc.Parts == nil {
			return doc.Committed > 0
		}
		return slices.ContainsFunc(doc.Parts.List, func(p state.Part) bool { return p.Committed > 0 || p.Finished() })
	})
}

// ended checks what a process did, and counts it. saved reports that an earlier one had committed bytes.
// dead reports that the process crashed.
func (a *autoSimulation) ended(t *testing.T, out *autoOutcome, r *autoRun, res *upload.Result, err error, saved, dead bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.divided > 1 || r.discarded > discardMost {
		t.Errorf("Parts.Auto discarded bytes of %d sessions, up to %d", r.divided, r.discarded)
	}
	if r.divided > 0 && (a.by != byAuto || res.Resumed) {
		t.Errorf("a session was discarded by a process of kind %d, which resumed an upload (%t)", a.by, res.Resumed)
	}
	if saved && err == nil && !dead && !res.Resumed && !r.reported {
		t.Error("a saved upload with committed bytes was not resumed, and no event has the reason")
	}
	if a.by != byAuto && !res.Resumed {
		return
	}
	switch {
	case res.Resumed && a.by == byAuto && a.last == byAuto:
		out.AutoByAuto++
	case res.Resumed && a.by == byAuto:
		out.OtherByAuto++
	case res.Resumed && a.last == byAuto:
		out.AutoByOther++
	case res.Resumed:
	case r.divided > 0 || r.parts && r.whole:
		out.Changed++
	case r.parts:
		out.Divided++
	case r.whole && res.Size >= a.minFile:
		out.Undivided++
	}
}

// changingLink is a transport over a link that changes.
type changingLink struct {
	next   http.RoundTripper
	rate   int64   // bytes per second of each request after the burst
	stalls []stall // no byte passes in them

	mu    sync.Mutex
	burst int64 // bytes that still pass at any rate
}

// stall is a period of time.
type stall struct{ from, to time.Time }

func (l *changingLink) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil && req.Body != http.NoBody {
		req = req.Clone(req.Context())
		req.Body = &linkBody{req.Body, l, req.Context()}
	}
	return l.next.RoundTrip(req)
}

// pass waits until n bytes of a request have passed, or its context is done.
func (l *changingLink) pass(ctx context.Context, n int64) {
	l.mu.Lock()
	fast := min(n, l.burst)
	l.burst -= fast
	l.mu.Unlock()
	wait := time.Duration((n - fast) * int64(time.Second) / l.rate)
	for _, s := range l.stalls {
		if now := time.Now(); now.After(s.from) {
			wait = max(wait, s.to.Sub(now))
		}
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
	}
}

// linkBody is the body of a request.
type linkBody struct {
	io.ReadCloser
	link *changingLink
	ctx  context.Context
}

func (b *linkBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), 64<<10)])
	b.link.pass(b.ctx, int64(n))
	return n, err
}
