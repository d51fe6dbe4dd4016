package upload_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
)

// auto uses Parts.Auto for files of 1 MiB and more, with parts of 1 MiB and more.
func auto(o *upload.Options) { o.Parallel = upload.AutoPartsFrom(0, mib, mib) }

// distant returns options of a service that answers after 10 ms and limits each connection.
func distant(perSecond int64) *fakegcs.Options {
	return &fakegcs.Options{NoMD5: true, Rate: perSecond, Latency: 10 * time.Millisecond}
}

// undivided returns the reasons why files were sent over one connection.
func (w *world) undivided() (why []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if e.Kind == upload.Undivided {
			why = append(why, e.Cause)
		}
	}
	return why
}

// If the service limits each connection, the upload uses many, and its Result has the rate of one
// and of all of them.
func TestAutoParts(t *testing.T) {
	t.Parallel()
	skipShort(t)
	const each = 4 * mib
	content := random(96 * mib)
	inBubble(t, distant(each), func(w *world) {
		path := w.file(content)
		began := time.Now()
		res, err := w.uploader(auto, func(o *upload.Options) { o.Parallel = o.Parallel.Joined(upload.ByCompose) }).File(w.t.Context(), path, spec)
		require.NoError(t, err)
		if took, alone := time.Since(began), time.Duration(int64(len(content))/each)*time.Second; took > alone/5 {
			t.Errorf("took %v; one connection takes %v", took, alone)
		}
		p := res.Parts
		if p == nil || p.Count != 32 || p.Connections < 8 || p.RateOfOne < each*8/10 || p.RateOfOne > each*12/10 || p.Rate < 7*each {
			t.Errorf("%+v", p)
		}
		w.mu.Lock()
		most, done := 0, 0
		for _, e := range w.events {
			if e.Parts != nil {
				most = max(most, e.Parts.Connections)
			}
			if e.Kind == upload.PartDone {
				if done++; e.Part < 1 || e.Part > 32 || e.Parts.Done < done {
					t.Errorf("part %d: %+v after %d parts", e.Part, e.Parts, done)
				}
			}
		}
		w.mu.Unlock()
		if most < 16 || done != 32 {
			t.Errorf("%d connections at most, %d parts done", most, done)
		}
		w.wantObject("obj", content)
		w.wantNoLeftovers()
	})
}

// TestAutoPartsUndivided checks that the event Undivided has the reason if a file is not divided.
func TestAutoPartsUndivided(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		with func(*upload.Options)
		spec upload.Spec
		want string // "" if it is divided
	}{
		"divided":      {func(*upload.Options) {}, spec, ""},
		"a rate limit": {func(o *upload.Options) { o.RateLimit = upload.NewRateLimit(1 << 20) }, spec, "one connection reaches the rate limit"},
		"a class":      {func(*upload.Options) {}, upload.Spec{Bucket: "bkt", Object: "obj", StorageClass: "ARCHIVE"}, "temporary objects of the storage class ARCHIVE are billed for 365 days"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, distant(64*mib), func(w *world) {
				res, err := w.uploader(auto, test.with, func(o *upload.Options) { o.Parallel = o.Parallel.Joined(upload.ByCompose) }).File(w.t.Context(), w.file(data(9*mib)), test.spec)
				why := strings.Join(w.undivided(), "; ")
				if divided := res.Parts != nil; err != nil || divided != (test.want == "") || !strings.HasPrefix(why, test.want) || divided != (why == "") {
					t.Errorf("%+v, %q, %v", res.Parts, why, err)
				}
				if n := w.saw(upload.Warning); n > 0 {
					t.Errorf("%d warnings", n)
				}
			})
		})
	}
}

// TestAutoPartsDiscards checks that failed requests do not add to what is discarded of a session over a slow connection.
func TestAutoPartsDiscards(t *testing.T) {
	t.Parallel()
	content := random(64 * mib)
	for cuts, divided := range []bool{true, true, false} {
		inBubble(t, &fakegcs.Options{NoMD5: true, Rate: 60 * mib}, func(w *world) {
			for i := range int64(cuts) {
				w.addFaults(faults.Fault{
					Match: faults.Match{Op: faults.OpPut, From: i * 6 * mib, To: i*6*mib + 1}, Do: faults.Action{Effect: faults.EffectCutRequest, Bytes: 6 * mib},
				})
			}
			res, err := w.uploader(auto).File(w.t.Context(), w.file(content), spec)
			if err != nil || (res.Parts != nil) != divided {
				t.Errorf("%d cuts: %+v, %v, %q", cuts, res.Parts, err, w.undivided())
			}
			w.wantObject("obj", content)
		})
	}
}

// A pause before the first byte does not count when the rate of the first connection is measured.
func TestAutoPartsAfterPause(t *testing.T) {
	t.Parallel()
	inBubble(t, distant(mib/4), func(w *world) {
		limit := upload.NewRateLimit(0)
		time.AfterFunc(time.Minute, func() { limit.SetLimit(upload.Unlimited) })
		began := time.Now()
		res, err := w.uploader(auto, func(o *upload.Options) { o.RateLimit = limit }).File(w.t.Context(), w.file(random(20*mib)), spec)
		if err != nil || res.Parts == nil {
			t.Fatal(res.Parts, err)
		}
		if took := time.Since(began) - time.Minute; took > 55*time.Second {
			t.Errorf("took %v after the pause\n%s", took, w.trace())
		}
	})
}

// The service is near but limits each connection. The first bytes show that, and the file is
// sent in parts. The next file is divided at once.
func TestAutoPartsNearButSlow(t *testing.T) {
	t.Parallel()
	skipShort(t)
	const each, wasted = 4 * mib, mib
	content := random(40 * mib)
	for name, store := range map[string]func(*upload.Options){"saved": func(*upload.Options) {}, "not saved": withoutStore} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, &fakegcs.Options{NoMD5: true, Rate: each}, func(w *world) {
				var canceled atomic.Int64
				up := w.uploader(auto, store, func(o *upload.Options) {
					o.Exchange = func(x upload.Exchange) {
						if x.Op == session.OpCancel {
							canceled.Add(1)
						}
					}
				})
				began := time.Now()
				res, err := up.File(w.t.Context(), w.file(content), spec)
				if err != nil || res.Parts == nil || res.BytesSent != int64(len(content))+res.BytesResent || res.BytesResent == 0 || res.BytesResent > wasted {
					t.Fatalf("%+v: %+v, %v", res, res.Parts, err)
				}
				if took, alone := time.Since(began), time.Duration(int64(len(content))/each)*time.Second; took > alone*2/3 {
					t.Errorf("took %v; one connection takes %v", took, alone)
				}
				if n := canceled.Load(); n != 1 {
					t.Errorf("%d sessions were canceled", n)
				}
				if w.saw(upload.Divided) != 1 || w.saw(upload.Discarded) != 0 || w.saw(upload.Undivided) != 0 {
					t.Errorf("%d divided, %d discarded, %d undivided", w.saw(upload.Divided), w.saw(upload.Discarded), w.saw(upload.Undivided))
				}
				w.wantOnlyObject(content)
				res, err = up.File(w.t.Context(), w.file(content[1:]), spec)
				if err != nil || res.Parts == nil || res.BytesSent != int64(len(content))-1 || res.BytesResent != 0 {
					t.Errorf("%+v: %+v, %v", res, res.Parts, err)
				}
			})
		})
	}
}

// A low rate of the first request does not divide the file if a rate limit is the cause.
func TestAutoPartsNearWithRateLimit(t *testing.T) {
	t.Parallel()
	content := data(20 * mib)
	for _, limit := range []int64{8 << 20, 20 << 20} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(w *world) {
				res, err := w.uploader(auto, func(o *upload.Options) { o.RateLimit = upload.NewRateLimit(limit) }).File(w.t.Context(), w.file(content), spec)
				if err != nil || res.Parts != nil || res.BytesSent != 20*mib || len(w.undivided()) != 1 || w.saw(upload.Divided) != 0 {
					t.Errorf("%+v, %q, %v", res, w.undivided(), err)
				}
			})
		})
	}
}
