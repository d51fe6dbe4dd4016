package upload_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/session"
	"gcsup/upload"
)

// TestSmallFileReplacesNothingUnseen checks that a small file whose reply was lost is
// not inserted again over an object that another writer made in between, for any
// difference of the two clocks.
func TestSmallFileReplacesNothingUnseen(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content, earlier, other := data(1000), []byte("from before"), []byte("of another writer")
	forbidden := faults.Fault{Match: faults.Match{Op: faults.OpGet}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 403, Reason: "forbidden"}}
	lost := faults.Fault{Match: faults.Match{Op: faults.OpInsert}, Do: faults.Action{Effect: faults.EffectLoseReply}}
	failed := faults.Fault{Match: faults.Match{Op: faults.OpInsert}, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}}
	for _, skew := range []time.Duration{0, time.Hour, -time.Hour} {
		for _, tt := range []struct {
			name    string
			fault   faults.Fault
			age     time.Duration // of the object that is there already; 0 if there is none
			between bool          // another writer comes in between
			hidden  bool          // the caller may not read the object
			want    error
			object  []byte
			writes  int // number of generations at the end, without those of the other writer
		}{
			{"nothing there", failed, 0, false, false, nil, content, 1},
			{"ours arrived", lost, 0, false, false, nil, content, 1},
			{"ours arrived in the place of another", lost, time.Minute, false, false, nil, content, 1},
			{"ours did not arrive, and an old one is there", failed, time.Minute, false, false, nil, content, 1},
			{"another writer after ours", lost, 0, true, false, session.ErrOutcomeUnknown, other, 1},
			{"another writer, and ours did not arrive", failed, 0, true, false, session.ErrOutcomeUnknown, other, 0},
			{"another writer, in the place of an old one", failed, time.Minute, true, false, session.ErrOutcomeUnknown, other, 0},
			{"hidden, nothing there", failed, 0, false, true, nil, content, 1},
			{"hidden, ours arrived", lost, 0, false, true, session.ErrOutcomeUnknown, content, 1},
			{"hidden, another writer", failed, 0, true, true, session.ErrOutcomeUnknown, other, 0},
			// The Date of a reply has whole seconds.
			{"ours did not arrive, and one of the second before is there", failed, time.Second, false, false, session.ErrOutcomeUnknown, earlier, 0},
		} {
			t.Run(fmt.Sprint(tt.name, " ", skew), func(t *testing.T) {
				inBubble(t, &fakegcs.Options{ClockSkew: skew}, func(w *world) {
					client, err := session.NewClient(w.http, "http://gcs.test")
					if err != nil {
						t.Fatal(err)
					}
					foreign := 0
					write := func(content []byte) {
						foreign++
						if r := client.Insert(w.t.Context(), spec, int64(len(content)), chunk.Update(0, content), bytes.NewReader(content)); r.Status != 200 {
							t.Errorf("the other writer: %+v", r)
						}
					}
					if tt.age > 0 {
						write(earlier)
						time.Sleep(tt.age)
					}
					w.addFaults(tt.fault)
					if tt.hidden {
						w.addFaults(forbidden)
					}
					up := w.uploader(func(o *upload.Options) {
						o.Observer = func(e upload.Event) {
							if e.Kind == upload.Waiting && tt.between {
								write(other)
							}
						}
					})
					_, err = up.File(w.t.Context(), w.file(content), spec)
					if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
						t.Errorf("error = %v, want %v\n%s", err, tt.want, w.trace())
					}
					w.wantObject("obj", tt.object)
					writes := -foreign
					for _, r := range w.srv.Requests() {
						if r.Op == faults.OpInsert && (r.Status == 200 || r.Fault == faults.EffectLoseReply) {
							writes++
						}
					}
					if writes != tt.writes {
						t.Errorf("our bytes were written %d times, want %d\n%s", writes, tt.writes, w.trace())
					}
				})
			})
		}
	}
}

// TestManyUploadsToPeerThatClosesIdleConnections checks that a request that needs a
// new connection does not use an idle one of another upload. One file in ten
// waited for a second.
func TestManyUploadsToPeerThatClosesIdleConnections(t *testing.T) {
	t.Parallel()
	skipShort(t)
	const workers, files = 32, 20
	for _, after := range []time.Duration{5 * time.Millisecond, 30 * time.Millisecond} {
		inBubble(t, &fakegcs.Options{Latency: 3 * time.Millisecond}, func(w *world) {
			w.addFaults(faults.Fault{Times: -1, Do: faults.Action{Effect: faults.EffectCloseAfter, For: after}})
			path := w.file(data(1000))
			up := w.uploader(withoutStore)
			var retries atomic.Int64
			var wg sync.WaitGroup
			for i := range workers {
				wg.Go(func() {
					for j := range files {
						time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
						res, err := up.File(w.t.Context(), path, upload.Spec{Bucket: "bkt", Object: fmt.Sprint(i, "-", j)})
						if err != nil {
							t.Error(err)
						}
						retries.Add(int64(res.Retries))
					}
				})
			}
			wg.Wait()
			if n := retries.Load(); n > workers*files/20 {
				t.Errorf("%v: %d of %d files waited", after, n, workers*files)
			}
		})
	}
}

// TestPeerThatClosesIdleConnections checks that an upload succeeds with a peer that
// silently closes each connection a few milliseconds after its reply. In earlier
// versions, every request after a query used the connection of that query, which was
// being closed, and so did every part after the list of parts.
func TestPeerThatClosesIdleConnections(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(multipartLarge)
	for _, after := range []time.Duration{time.Millisecond, 5 * time.Millisecond, 30 * time.Millisecond} {
		for name, with := range map[string]func(*upload.Options){"session": func(*upload.Options) {}, "multipart": byMultipart} {
			inBubble(t, &fakegcs.Options{Rate: 20 * mib, Latency: 3 * time.Millisecond}, func(w *world) {
				w.addFaults(faults.Fault{Times: -1, Do: faults.Action{Effect: faults.EffectCloseAfter, For: after}})
				if _, err := w.uploader(with).File(w.t.Context(), w.file(content), spec); err != nil {
					t.Fatalf("%s, %v: %v\n%s", name, after, err, w.trace())
				}
				w.wantOnlyObject(content)
				for _, e := range w.events {
					if e.Kind == upload.Waiting && (e.Part > 0 || name == "session") {
						t.Errorf("%s, %v: part %d waited: %s\n%s", name, after, e.Part, e.Cause, w.trace())
					}
				}
			})
		}
	}
}
