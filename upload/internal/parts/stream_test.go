package parts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/bucket"
	"gcsup/internal/multipart"
	"gcsup/session"
	"gcsup/upload/internal/atrisk"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/source"
)

// stream starts the upload of r in the parts of one multipart upload. close must be called after it.
func (w *world) stream(r io.Reader) (s *Stream, close func()) { return w.streamIn(Multipart, r) }

// streamIn is stream for one multipart upload, or for several that are composed.
func (w *world) streamIn(way Way, r io.Reader) (s *Stream, close func()) {
	w.Helper()
	d := w.division()
	d.File, d.Options.Connections = nil, max(w.options.Connections, 2)
	d.Wire.Pos.Size.Store(-1)
	planner := Planner{Division: d, Multipart: true, Compose: way == Compose, Buckets: w.buckets, Size: -1, ID: id}
	content, err := source.NewStream(r, d.Memory, 2*multipart.MinPart)
	if err != nil {
		w.Fatal(err)
	}
	content.Hold(0, 0)
	if n, whole, err := content.First(w.Context()); whole || err != nil || !StreamWindow(n, d.Memory.Share()) {
		w.Fatalf("%d bytes, %v, %v", n, whole, err)
	}
	plan, err := planner.PlanStream(w.Context())
	if err != nil || plan.Way != way {
		w.Fatalf("%+v, %v", plan, err)
	}
	d.Journal.BeginRemoval(plan.Parts)
	if err := d.Journal.Persist(w.Context()); err != nil {
		w.Fatal(err)
	}
	w.requests()
	s = NewStream(d, plan.Parts, content)
	return s, func() {
		s.Close()
		content.Close()
		d.Journal.Close()
	}
}

// TestStream checks the requests and the progress of a stream, whose bytes a part has in memory until the service has
// them.
func TestStream(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{}, func(w *world) {
		w.content = random(3*multipart.MinPart + 5)
		s, end := w.stream(bytes.NewReader(w.content))
		defer end()
		if size, _, _, _ := s.Position(); size != -1 {
			t.Errorf("the size is %d at the beginning", size)
		}
		o, err := s.Send(w.Context())
		w.made(s, o, err)
		if got := w.requests(); got != strings.Repeat("parts-put ", 4)+"parts-list parts-complete get" {
			t.Errorf("the requests are %s", got)
		}
		n := int64(len(w.content))
		size, sent, arrived, committed := s.Position()
		if count, done, sending := s.Progress(); count != 4 || done != 4 || sending != 0 || size != n || sent != n || arrived != n || committed != n {
			t.Errorf("at the end %d parts, %d done, %d sending; %d, %d and %d bytes of %d", count, done, sending, sent, arrived, committed, size)
		}
		if s.Used == nil || len(w.noted(engine.PartDone)) != 4 || s.last.Uplink.Tally.Sent.Load() != n {
			t.Errorf("used %+v, %d parts are done", s.Used, len(w.noted(engine.PartDone)))
		}
	})
}

// TestStreamFaults sends streams of random sizes with random faults: each one has the right bytes, or leaves nothing.
func TestStreamFaults(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		inBubble(t, fakegcs.Options{NoMD5: rnd.IntN(2) == 0}, func(w *world) {
			w.content, w.tries = random(2*multipart.MinPart+1+rnd.Int64N(3*multipart.MinPart)), 4
			w.options.Connections = 1 + rnd.IntN(4)
			effects := []faults.Action{
				status(503), status(404), {Effect: faults.EffectCorrupt, Bytes: 1}, {Effect: faults.EffectLoseReply},
				{Effect: faults.EffectCutRequest, Bytes: mib}, {Effect: faults.EffectReset}, {Effect: faults.EffectStall},
			}
			s, end := w.stream(iotest.HalfReader(bytes.NewReader(w.content)))
			defer end()
			for range rnd.IntN(5) {
				op := []faults.Op{faults.OpPartsPut, faults.OpPartsPut, faults.OpPartsList, faults.OpPartsComplete}[rnd.IntN(4)]
				do := effects[rnd.IntN(len(effects))]
				f := faults.Fault{Match: faults.Match{Op: op}, Skip: rnd.IntN(4), Times: 1 + rnd.IntN(2), Do: do}
				if f.Validate() == nil {
					w.fault(op, f.Skip+1, f.Times, do)
				}
			}
			o, err := s.Send(w.Context())
			w.srv.ClearFaults()
			if err == nil {
				if err := s.Finish(w.Context()); err != nil {
					t.Error(err)
				}
				if got, err := w.srv.ReadObject("bkt", "obj"); err != nil || !bytes.Equal(got, w.content) || o.Size != int64(len(got)) {
					t.Errorf("seed %d: the object has %d other bytes, %v", seed, len(got), err)
				}
				return
			}
			if failed, ok := errors.AsType[*session.Error](err); !ok && !errors.Is(err, session.ErrSessionLost) {
				t.Errorf("seed %d: %v, %v", seed, failed, err)
			}
			if err := s.Abandon(w.Context()); err != nil {
				t.Error(err)
			}
			if left := w.stored(); left != "" && left != "obj" {
				t.Errorf("seed %d: the service has %s after %v", seed, left, err)
			}
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestStreamBeyond sends streams that need several multipart uploads, to temporary objects that are composed, with
// random faults: each one has the right bytes, or leaves nothing. What a process left that is killed meanwhile can be
// removed.
func TestStreamBeyond(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		inBubble(t, fakegcs.Options{NoMD5: rnd.IntN(2) == 0}, func(w *world) {
			w.content, w.tries = random(2*multipart.MinPart+1+rnd.Int64N(5*multipart.MinPart)), 4
			w.options.Connections, w.options.MaxParts = 1+rnd.IntN(4), 1+rnd.IntN(3)
			if rnd.IntN(3) == 0 { // the compose deletes the temporary objects
				w.ask("PATCH", "/storage/v1/b/bkt", `{"softDeletePolicy":{"retentionDurationSeconds":"604800"}}`)
			}
			s, end := w.streamIn(Compose, iotest.HalfReader(bytes.NewReader(w.content)))
			for range rnd.IntN(5) {
				op := []faults.Op{faults.OpPartsPut, faults.OpPartsStart, faults.OpPartsList, faults.OpPartsComplete, faults.OpCompose}[rnd.IntN(5)]
				do := []faults.Action{
					status(503), status(404), status(412), {Effect: faults.EffectCorrupt, Bytes: 1}, {Effect: faults.EffectLoseReply},
					{Effect: faults.EffectCutRequest, Bytes: mib}, {Effect: faults.EffectReset},
				}[rnd.IntN(7)]
				f := faults.Fault{Match: faults.Match{Op: op}, Skip: rnd.IntN(4), Times: 1 + rnd.IntN(2), Do: do}
				if f.Validate() == nil {
					w.fault(op, f.Skip+1, f.Times, do)
				}
			}
			ctx, kill := context.WithCancel(w.Context())
			defer kill()
			killed := rnd.IntN(3) == 0
			if after := rnd.IntN(20); killed {
				w.before = func(*http.Request) {
					if after--; after == 0 {
						kill()
					}
				}
			}
			o, err := s.Send(ctx)
			w.before = nil
			w.srv.ClearFaults()
			want := ""
			switch {
			case err != nil && killed:
				end()
				d := w.division()
				defer d.Journal.Close()
				if err := NewUpload(d, false).Abandon(w.Context()); err != nil {
					t.Error(err)
				}
			case err != nil:
				defer end()
				if _, ok := errors.AsType[*session.Error](err); !ok && !errors.Is(err, session.ErrSessionLost) {
					t.Errorf("seed %d: %v", seed, err)
				}
				if err := s.Abandon(w.Context()); err != nil {
					t.Error(err)
				}
			default:
				defer end()
				want = "obj"
				if err := s.Finish(w.Context()); err != nil {
					t.Error(err)
				}
				if got, err := w.srv.ReadObject("bkt", "obj"); err != nil || !bytes.Equal(got, w.content) || o.Size != int64(len(got)) {
					t.Errorf("seed %d: the object has %d other bytes, %v", seed, len(got), err)
				}
				n := int64(len(w.content))
				if size, sent, _, committed := s.Position(); size != n || sent != n || committed != n {
					t.Errorf("seed %d: %d bytes, %d sent, %d committed, want %d", seed, size, sent, committed, n)
				}
				if count, done, _ := s.Progress(); count != done || int64(count)*multipart.MinPart < n-2*multipart.MinPart {
					t.Errorf("seed %d: %d parts of %d", seed, done, count)
				}
			}
			lost := slices.ContainsFunc(w.srv.Requests(), func(r fakegcs.Request) bool { return r.Op == "parts-start" && r.Fault != "" })
			if left := w.stored(); left != want && !(err != nil && left == "obj") && !lost {
				t.Errorf("seed %d: the service has %s, want %s after %v", seed, left, want, err)
			}
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestStreamGroups checks a stream of more temporary objects than one request composes: what a process left that is
// killed after it composed some of them can be removed.
func TestStreamGroups(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
		w.content = random(bucket.ComposeMax*multipart.MinPart + 1)
		w.options.MaxParts = 1
		s, end := w.streamIn(Compose, bytes.NewReader(w.content))
		ctx, kill := context.WithCancel(w.Context())
		defer kill()
		composes := 0
		w.before = func(req *http.Request) {
			if strings.HasSuffix(req.URL.Path, "/compose") {
				if composes++; composes == 2 {
					kill()
				}
			}
		}
		if o, err := s.Send(ctx); err == nil || composes < 2 {
			t.Fatalf("%+v, %v, after %d composes", o, err, composes)
		}
		end()
		d := w.division()
		defer d.Journal.Close()
		if err := NewUpload(d, false).Abandon(w.Context()); err != nil {
			t.Error(err)
		}
		if left := w.stored(); left != "" {
			t.Errorf("the service has %s", left)
		}
	})
}

// TestStreamEnds checks that a stream that fails, is interrupted or has too many parts ends with its error, and that
// its memory is free.
func TestStreamEnds(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		r    io.Reader
		stop bool
		err  error
	}{
		"broken":   {io.MultiReader(bytes.NewReader(random(3*multipart.MinPart)), iotest.ErrReader(broken)), false, broken},
		"canceled": {bytes.NewReader(random(8 * multipart.MinPart)), true, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, fakegcs.Options{Rate: mib}, func(w *world) {
				ctx, cancel := context.WithCancel(w.Context())
				defer cancel()
				if test.stop {
					time.AfterFunc(6*time.Second, cancel)
				}
				s, end := w.stream(test.r)
				if _, err := s.Send(ctx); !errors.Is(err, test.err) {
					t.Errorf("%v", err)
				}
				if err := s.Abandon(ctx); err != nil {
					t.Error(err)
				}
				end()
				if left := w.stored(); left != "" {
					t.Errorf("the service has %s", left)
				}
				if free := s.last.Memory.NewBuffer(s.last.Memory.Budget()); free == nil {
					t.Error("its memory is not free")
				}
			})
		})
	}
}

// TestStreamConnections checks that parts are sent at a time, as the connections, the memory and the bytes at risk
// allow.
func TestStreamConnections(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		connections, want int
		memory            int64
		bound             *atrisk.Bound
	}{
		{2, 2, 64 * mib, nil}, {8, 8, 64 * mib, nil}, {8, 2, 18 * mib, nil}, {8, 3, 64 * mib, &atrisk.Bound{}},
	} {
		t.Run(fmt.Sprint(test.connections, test.memory, test.bound != nil), func(t *testing.T) {
			t.Parallel()
			inBubble(t, fakegcs.Options{NoMD5: true, Rate: mib}, func(w *world) {
				w.content, w.memory, w.options.Connections = random(10*multipart.MinPart), test.memory, test.connections
				s, end := w.stream(bytes.NewReader(w.content))
				defer end()
				s.last.Uplink.AtRisk = test.bound
				most := 0
				w.before = func(*http.Request) {
					if len(w.noted(engine.PartDone)) == 0 {
						_, _, sending := s.Progress()
						most = max(most, sending)
					}
				}
				o, err := s.Send(w.Context())
				w.made(s, o, err)
				if most != test.want {
					t.Errorf("%d connections, want %d", most, test.want)
				}
			})
		})
	}
}

// TestStreamParts checks what the parts of a stream hold: at least 0.5 TiB with the default memory. Its parts are
// small as long as possible, and one never needs more than the memory.
func TestStreamParts(t *testing.T) {
	t.Parallel()
	share := int64(112 * mib) // of the default
	for _, o := range []Options{{Connections: 2, Min: DefaultMin}, {Connections: 8, Min: DefaultMin}, {Connections: 256, Min: DefaultMin}} {
		if limit := o.StreamLimit(share, share); limit < 1<<39 || limit > share*multipart.MaxParts {
			t.Errorf("%+v: %d bytes", o, limit)
		}
		if limit := o.StreamLimit(0, 0); limit < 1<<39 {
			t.Errorf("%+v: %d bytes without a limit of the memory", o, limit)
		}
		if limit := o.StreamLimit(3*multipart.MinPart, 3*multipart.MinPart); limit < multipart.MinPart*multipart.MaxParts {
			t.Errorf("%+v: %d bytes in little memory", o, limit)
		}
		if base := o.streamBase(share); base < multipart.MinPart || base > DefaultMin || o.Connections > 2 && base != multipart.MinPart {
			t.Errorf("%+v: parts of %d bytes", o, base)
		}
	}
	for offset, want := range map[int64]int64{0: 5 * mib, 8 << 30: 5 * mib, 17 << 30: 10 * mib, 1 << 39: share, 5 << 40: share} {
		if got := streamPart(5*mib, offset, share); got < want || got >= want+mib || got%chunk.Granularity != 0 {
			t.Errorf("a part of %d bytes at %d, want %d", got, offset, want)
		}
	}
	if got := streamPart(5*mib, 1<<45, 0); got > multipart.MaxPart {
		t.Errorf("a part of %d bytes", got)
	}
}

// TestStreamTooLong checks the error of a stream that has more bytes than its parts hold.
func TestStreamTooLong(t *testing.T) {
	t.Parallel()
	s := &Stream{most: multipart.MaxParts, last: &Upload{dividedFile: &dividedFile{}}}
	if err := s.tooLong(multipart.MaxParts-1, chunk.Range{To: 1}); err != nil {
		t.Error(err)
	}
	if err := s.tooLong(1, chunk.Range{From: MaxObject - 1, To: MaxObject}); err != nil {
		t.Error(err)
	}
	if err := s.tooLong(1, chunk.Range{From: MaxObject, To: MaxObject + 1}); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("more than an object can have: %v", err)
	}
	err := s.tooLong(multipart.MaxParts, chunk.Range{From: 12345, To: 12346})
	if !errors.Is(err, session.ErrInvalid) || !strings.Contains(err.Error(), "12345 bytes") || !strings.Contains(err.Error(), "--spool") {
		t.Error(err)
	}
}
