package upload_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/internal/bucket"
	"gcsup/internal/checksum"
	"gcsup/internal/objectmeta"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
)

// TestSkipGuardsInsert checks that a small file that was compared with its object replaces only this
// object, so that the outcome of a lost reply is known, and that another writer in between
// causes no error.
func TestSkipGuardsInsert(t *testing.T) {
	t.Parallel()
	content, earlier, other := data(1000), []byte("from before"), []byte("of another writer")
	insert, get := faults.Match{Op: faults.OpInsert}, faults.Match{Op: faults.OpGet}
	failed := faults.Fault{Match: insert, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}}
	lost := faults.Fault{Match: insert, Do: faults.Action{Effect: faults.EffectLoseReply}}
	hidden := faults.Fault{Match: get, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 403, Reason: "forbidden"}}
	none := []byte(nil)
	for _, tt := range []struct {
		name   string
		first  []byte // the object that is compared; nil for none
		listed bool
		fault  faults.Fault
		at     int    // the request before which another writer acts, from 1; 0 if there is none
		write  []byte // what it writes; nil if it deletes the object
		guards string // ifGenerationMatch of each insert: "first" is the object that was compared
		err    error
		want   []byte
		skip   upload.Skip
	}{
		{name: "no failure", first: earlier, guards: "[first]", want: content},
		{name: "no failure, listed", first: earlier, listed: true, guards: "[first]", want: content},
		{name: "no object", guards: "[0]", want: content},
		{name: "no object, listed", listed: true, guards: "[0]", want: content},
		{name: "not executed", first: earlier, fault: failed, guards: "[first first]", want: content},
		{name: "executed", first: earlier, fault: lost, guards: "[first]", want: content},
		{name: "another writer before", first: earlier, at: 2, write: other, guards: "[first ]", want: content},
		{name: "another writer before, listed", first: earlier, listed: true, at: 1, write: other, guards: "[first ]", want: content},
		{name: "another writer before, no object", at: 2, write: other, guards: "[0 ]", want: content},
		{name: "deleted before", first: earlier, at: 2, write: none, guards: "[first ]", want: content},
		{name: "the same bytes before", first: earlier, at: 2, write: content, guards: "[first]", want: content, skip: upload.SkipIdentical},
		{name: "another writer before, hidden", first: earlier, listed: true, fault: hidden, at: 1, write: other, guards: "[first ]", want: content},
		{name: "never readable", first: earlier, fault: hidden, guards: "[]", want: content},
		{name: "another writer after", first: earlier, fault: lost, at: 3, write: other, guards: "[first]", err: session.ErrOutcomeUnknown, want: other},
		{name: "another writer, not executed", first: earlier, fault: failed, at: 3, write: other, guards: "[first]", err: session.ErrOutcomeUnknown, want: other},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, nil, func(w *world) {
				real := w.http.Transport
				client, err := session.NewClient(&http.Client{Transport: real}, "http://gcs.test")
				require.NoError(t, err)
				write := func(content []byte) {
					r := bucket.Delete(w.t.Context(), client, spec)
					if content != nil {
						r = client.Insert(w.t.Context(), spec, int64(len(content)), checksum.Update(0, content), bytes.NewReader(content))
					}
					if r.Err != nil || r.Status/100 != 2 && r.Status != 404 {
						t.Errorf("the other writer: %+v", r)
					}
				}
				write(tt.first)
				job := upload.Job{Path: w.file(content), Size: int64(len(content)), ModTime: time.Now(), Spec: spec, Listed: tt.listed}
				object, _ := w.srv.Object("bkt", "obj")
				if tt.listed && tt.first != nil {
					job.Object = lookUp(t, w, spec)
				}
				if tt.fault.Match.Op != "" {
					w.addFaults(tt.fault)
				}
				var guards []string
				n := 0
				w.http = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
					if n++; n == tt.at {
						write(tt.write)
					}
					if r.Method == "POST" {
						guard := r.URL.Query().Get("ifGenerationMatch")
						if guard == fmt.Sprint(object.Generation) && tt.first != nil {
							guard = "first"
						}
						guards = append(guards, guard)
					}
					return real.RoundTrip(r)
				})}
				res := files(w.t.Context(), w.uploader(), []upload.Job{job}, &upload.BatchOptions{Skip: upload.SkipIdentical})["obj"]
				if res.err != nil && tt.err == nil || !errors.Is(res.err, tt.err) || res.Skipped != tt.skip {
					t.Errorf("skipped %v, error = %v, want %v and %v\n%s", res.Skipped, res.err, tt.skip, tt.err, w.trace())
				}
				if got := fmt.Sprint(guards); got != tt.guards {
					t.Errorf("inserts with the guards %s, want %s\n%s", got, tt.guards, w.trace())
				}
				w.wantObject("obj", tt.want)
				if now, _ := w.srv.Object("bkt", "obj"); res.err == nil && res.Object.Generation != now.Generation {
					t.Errorf("generation %d, want %d", res.Object.Generation, now.Generation)
				}
			})
		})
	}
}

// TestSkipGuardsSameBytes checks that the object that was compared does not count as the new one
// if its bytes are those of the source. Here, only its modification time differs.
func TestSkipGuardsSameBytes(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		jobs := w.jobs(1, 1000)
		jobs[0].Spec.Metadata = map[string]string{objectmeta.FileModTime: "1"}
		files(w.t.Context(), w.uploader(), jobs, nil)
		jobs[0].Spec.Metadata = nil
		first := lookUp(t, w, jobs[0].Spec)
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpInsert}, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}})
		res := files(w.t.Context(), w.uploader(), jobs, &upload.BatchOptions{Skip: upload.SkipSameTime})[jobs[0].Spec.Object]
		if res.err != nil || res.Object.Generation == first.Generation {
			t.Errorf("error %v, generation %d, want another than %d\n%s", res.err, res.Object.Generation, first.Generation, w.trace())
		}
	})
}

// TestSkipKeepsPreconditions checks that an upload with a precondition of the caller's has no other
// one.
func TestSkipKeepsPreconditions(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		jobs := w.jobs(1, 1000)
		var queries []string
		real := w.http.Transport
		w.http = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method == "POST" {
				queries = append(queries, r.URL.Query().Get("ifGenerationMatch")+","+r.URL.Query().Get("ifGenerationNotMatch"))
			}
			return real.RoundTrip(r)
		})}
		jobs[0].Spec.IfGenerationNotMatch = new(int64(5))
		res := files(w.t.Context(), w.uploader(), jobs, &upload.BatchOptions{Skip: upload.SkipIdentical})[jobs[0].Spec.Object]
		if want := []string{",5"}; res.err != nil || !slices.Equal(queries, want) {
			t.Errorf("error %v, preconditions %q, want %q", res.err, queries, want)
		}
	})
}
