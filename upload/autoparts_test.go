package upload_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/upload"
)

// auto uses AutoParts for files of 1 MiB and more, with parts of 1 MiB and more.
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
		res, err := w.uploader(auto, func(o *upload.Options) { o.Parallel = o.Parallel.By(upload.ByCompose) }).File(w.t.Context(), path, spec)
		if err != nil {
			t.Fatal(err)
		}
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

// A single connection sends the parts in the order of the file. The upload ends before a second
// connection is tried.
func TestAutoPartsInOrder(t *testing.T) {
	t.Parallel()
	content := data(12 * q)
	inBubble(t, distant(64*mib), func(w *world) {
		up := w.uploader(resumable, func(o *upload.Options) { o.Parallel = upload.AutoPartsFrom(0, q, q).By(upload.ByCompose) })
		if _, err := up.File(w.t.Context(), w.file(content), spec); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the server counts a request when it ends, after the reply
		var names []string
		for _, r := range w.srv.Requests() {
			if r.Op == faults.OpStart {
				names = append(names, r.Object)
			}
		}
		// The first session measured the rate.
		if len(names) != 13 || !slices.IsSorted(names[1:]) {
			t.Errorf("the parts were begun in this order: %q", names)
		}
		w.wantObject("obj", content)
	})
}

// If the link limits all connections together, few are used, and the next file is sent over one.
func TestAutoPartsUseless(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := random(40 * mib)
	inBubble(t, &fakegcs.Options{NoMD5: true, TotalRate: 4 * mib, Latency: 10 * time.Millisecond}, func(w *world) {
		up := w.uploader(auto)
		res, err := up.File(w.t.Context(), w.file(content), spec)
		if err != nil || res.Parts == nil || res.Parts.Connections > 4 || res.Parts.Rate > 4*mib*120/100 { // the bytes of a part are spread evenly over its time
			t.Fatalf("%+v, %v", res.Parts, err)
		}
		res, err = up.File(w.t.Context(), w.file(content[:8*mib+1]), spec)
		if err != nil || res.Parts != nil || !slices.Equal(w.undivided(), []string{"more connections did not raise the rate of an earlier file"}) {
			t.Errorf("%+v, %q, %v", res.Parts, w.undivided(), err)
		}
		time.Sleep(11 * time.Minute) // the network may have changed
		if res, err = up.File(w.t.Context(), w.file(content[:8*mib+2]), spec); err != nil || res.Parts == nil {
			t.Errorf("%+v, %v", res.Parts, err)
		}
	})
}

// All files of an Uploader share the connections.
func TestAutoPartsShared(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, distant(4*mib), func(w *world) {
		next := w.http.Transport
		var mu sync.Mutex
		sending, most := 0, 0
		w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
			if req.Method == "PUT" {
				mu.Lock()
				sending++
				most = max(most, sending)
				mu.Unlock()
				defer func() {
					mu.Lock()
					defer mu.Unlock()
					sending--
				}()
			}
			return next.RoundTrip(req)
		})}
		up := w.uploader(func(o *upload.Options) { o.Parallel = upload.AutoPartsFrom(6, mib, mib) })
		for _, err := range up.Files(w.t.Context(), slices.Values(w.jobs(4, 24*mib)), nil) {
			if err != nil {
				t.Fatal(err)
			}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if most != 6 {
			t.Errorf("%d connections at most", most)
		}
		for _, e := range w.events {
			if p := e.Parts; p != nil && e.Kind == upload.Progress && p.Connections == 0 && e.Sent < e.Size {
				t.Errorf("%s had no connection", e.Spec.URL())
			}
		}
	})
}

// TestAutoPartsUndivided checks with which settings of the bucket, the service and
// the options a file is not divided, and how many requests that takes.
func TestAutoPartsUndivided(t *testing.T) {
	t.Parallel()
	content := data(9 * mib)
	class := spec
	class.StorageClass = "ARCHIVE"
	const denied = `{"kind":"storage#testIamPermissionsResponse"}`
	reply := func(op faults.Op, status int, body string) []faults.Fault {
		do := faults.Action{Effect: faults.EffectStatus, Status: status}
		if body != "" {
			do.Body, do.ContentType = body, "application/json"
		}
		return []faults.Fault{{Match: faults.Match{Op: op}, Times: -1, Do: do}}
	}
	for i, test := range []struct {
		name     string
		bucket   string // a patch
		notify   string // a notification
		spec     upload.Spec
		with     func(*upload.Options)
		faults   []faults.Fault
		want     string // "" if it is divided
		requests int    // before the upload
	}{
		{name: "nothing", spec: spec, requests: 4},
		{name: "versioning", bucket: `{"versioning":{"enabled":true}}`, spec: spec, requests: 4},
		{name: "soft delete", bucket: `{"softDeletePolicy":{"retentionDurationSeconds":"604800"}}`, spec: spec, requests: 4},
		{name: "retention", bucket: `{"retentionPolicy":{"retentionPeriod":"100"}}`, spec: spec, want: "the bucket has a retention policy", requests: 4},
		{name: "hold", bucket: `{"defaultEventBasedHold":true}`, spec: spec, want: "the bucket holds new objects", requests: 4},
		{name: "class of the bucket", bucket: `{"storageClass":"NEARLINE"}`, spec: spec, want: "temporary objects of the storage class NEARLINE are billed for 30 days", requests: 4},
		{name: "class of the object", spec: class, want: "temporary objects of the storage class ARCHIVE are billed for 365 days", requests: 4},
		{name: "notifications", notify: `{"topic":"t","payload_format":"NONE"}`, spec: spec, want: "the bucket sends Pub/Sub notifications", requests: 4},
		{name: "notifications of others", notify: `{"topic":"t","payload_format":"NONE","object_name_prefix":"logs/"}`, spec: spec, requests: 4},
		{name: "no permission to delete", faults: reply(faults.OpBucketPermissions, 200, denied), spec: spec, want: "the permission storage.objects.delete is missing", requests: 4},
		{name: "no permission to read the bucket", faults: reply(faults.OpBucketGet, 403, ""), spec: spec, want: "the settings of the bucket cannot be read (storage.buckets.get)", requests: 2},
		{name: "an emulator without permissions", faults: reply(faults.OpBucketPermissions, 400, ""), spec: spec, want: "the permissions for the bucket cannot be read", requests: 3},
		{name: "an emulator without notifications", faults: reply(faults.OpNotificationList, 404, ""), spec: spec, want: "the notifications of the bucket cannot be read", requests: 4},
		{name: "a rate limit", with: func(o *upload.Options) { o.RateLimit = upload.NewRateLimit(1 << 20) }, spec: spec, want: "one connection reaches the rate limit"},
		{name: "MD5", spec: upload.Spec{Bucket: "bkt", Object: "obj", MD5: make([]byte, 16)}, want: "a composed object has no MD5"},
	} {
		if i%testsize.Full(1, 2) != 0 && test.name != "notifications" {
			continue
		}
		if testing.Short() && test.name != "nothing" && test.name != "notifications" {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			opts := distant(64 * mib)
			opts.Faults, opts.NoMD5 = test.faults, false
			inBubble(t, opts, func(w *world) {
				if test.bucket != "" {
					w.patchBucket(test.bucket)
				}
				if test.notify != "" {
					w.request("POST", "/storage/v1/b/bkt/notificationConfigs", test.notify)
				}
				before := 0
				up := w.uploader(auto, func(o *upload.Options) {
					o.Parallel = o.Parallel.By(upload.ByCompose)
					if test.with != nil {
						test.with(o)
					}
					o.Exchange = func(x upload.Exchange) {
						if x.Op == session.OpStat || x.Op == session.OpBucket || x.Op == session.OpPermissions || x.Op == session.OpNotifications {
							before++
						}
					}
				})
				next := test.spec
				next.Object = "next"
				res, err := up.File(w.t.Context(), w.file(content), test.spec)
				if test.spec.MD5 == nil && err != nil {
					t.Fatal(err)
				}
				why := w.undivided()
				if divided := res.Parts != nil; divided != (test.want == "") || !divided && (len(why) != 1 || !strings.Contains(why[0], test.want)) {
					t.Errorf("%+v, %q", res.Parts, why)
				}
				if before != test.requests {
					t.Errorf("%d requests before the upload, want %d", before, test.requests)
				}
				if n := w.saw(upload.Warning); n > 0 {
					t.Errorf("%d warnings", n)
				}
				// The next file makes no further requests about the bucket.
				before = 0
				if _, err := up.File(w.t.Context(), w.file(content[:9*mib-1]), next); test.spec.MD5 == nil && err != nil {
					t.Fatal(err)
				}
				if before > 1 {
					t.Errorf("%d requests before the next upload", before)
				}
			})
		})
	}
}

// InParts divides a file even if temporary objects are costly, with one warning for each bucket.
func TestPartsCost(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, test := range []struct {
		bucket, notify, want string
		deleted              int // temporary objects that the compose does not delete
	}{
		{bucket: `{"storageClass":"COLDLINE"}`, want: "COLDLINE are billed for 90 days if the upload does not finish"},
		{notify: `{"topic":"t","payload_format":"NONE"}`, want: "Pub/Sub notifications", deleted: 3 * 6},
	} {
		t.Run(test.want, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(w *world) {
				if test.bucket != "" {
					w.patchBucket(test.bucket)
				} else {
					w.request("POST", "/storage/v1/b/bkt/notificationConfigs", test.notify)
				}
				up := w.uploader(byParts)
				for i := range 3 {
					res, err := up.File(w.t.Context(), w.file(data(partsLarge-int64(i))), spec)
					if err != nil || res.Parts == nil || res.Parts.Count != 6 {
						t.Fatalf("%+v, %v", res.Parts, err)
					}
				}
				deleted := 0
				for _, r := range w.srv.Requests() {
					if r.Op == faults.OpDelete && r.Status == http.StatusNoContent {
						deleted++
					}
				}
				if deleted != test.deleted {
					t.Errorf("%d temporary objects were deleted by requests of their own, want %d", deleted, test.deleted)
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				var causes []string
				for _, e := range w.events {
					if e.Kind == upload.Warning {
						causes = append(causes, e.Cause)
					}
				}
				if len(causes) != 1 || !strings.Contains(causes[0], test.want) {
					t.Errorf("%q", causes)
				}
			})
		})
	}
}

// A request about the bucket fails once and is repeated, for the first file and those that wait
// for it.
func TestPartsBucketFailsOnce(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, op := range []faults.Op{faults.OpBucketGet, faults.OpBucketPermissions, faults.OpNotificationList} {
		t.Run(string(op), func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(w *world) {
				w.addFaults(faults.Fault{Match: faults.Match{Op: op}, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}})
				asked := map[string]int{}
				got := files(w.t.Context(), w.uploader(byParts, func(o *upload.Options) {
					o.Exchange = func(x upload.Exchange) {
						w.mu.Lock()
						defer w.mu.Unlock()
						asked[string(x.Op)]++
					}
				}), w.jobs(3, partsLarge), nil)
				if ended(got, nil) != 3 {
					t.Errorf("%d succeeded", ended(got, nil))
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				want := map[faults.Op]string{faults.OpBucketGet: "bucket", faults.OpBucketPermissions: "permissions", faults.OpNotificationList: "notifications"}
				for o, name := range want {
					n := 1
					if o == op {
						n = 2
					}
					if asked[name] != n {
						t.Errorf("%d requests %s, want %d", asked[name], name, n)
					}
				}
			})
		})
	}
}

// With a rate limit, few connections are used, and the limit is reached.
func TestAutoPartsRateLimit(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := random(64 * mib)
	inBubble(t, distant(16*mib), func(w *world) {
		began := time.Now()
		res, err := w.uploader(auto, func(o *upload.Options) { o.RateLimit = upload.NewRateLimit(24 << 20) }).File(w.t.Context(), w.file(content), spec)
		if err != nil || res.Parts == nil {
			t.Fatal(res.Parts, err)
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("took %v", took)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		most := 0
		for _, e := range w.events {
			if e.Parts != nil {
				most = max(most, e.Parts.Connections)
			}
		}
		if most > 4 {
			t.Errorf("%d connections", most)
		}
	})
}

// A multipart upload makes no temporary objects. No setting of the bucket prevents
// it, and no request reads them.
func TestAutoPartsByMultipart(t *testing.T) {
	t.Parallel()
	content := data(12 * mib)
	inBubble(t, distant(64*mib), func(w *world) {
		w.patchBucket(`{"storageClass":"NEARLINE"}`)
		w.request("POST", "/storage/v1/b/bkt/notificationConfigs", `{"topic":"t","payload_format":"NONE"}`)
		asked := 0
		res, err := w.uploader(auto, func(o *upload.Options) {
			o.Exchange = func(x upload.Exchange) {
				if x.Op == session.OpBucket || x.Op == session.OpPermissions || x.Op == session.OpNotifications {
					asked++
				}
			}
		}).File(w.t.Context(), w.file(content), spec)
		if err != nil || res.Parts == nil || asked != 0 || w.saw(upload.Warning) != 0 {
			t.Errorf("%+v, %d requests about the bucket, %v", res.Parts, asked, err)
		}
		w.wantObject("obj", content)
	})
}

// A file is sent by the same requests as without AutoParts if one connection is fast.
func TestAutoPartsFast(t *testing.T) {
	t.Parallel()
	for _, latency := range []time.Duration{0, 10 * time.Millisecond} {
		t.Run(latency.String(), func(t *testing.T) {
			t.Parallel()
			inBubble(t, &fakegcs.Options{NoMD5: true, Latency: latency}, func(w *world) {
				path := w.file(data(20 * mib))
				alone, err := w.uploader().File(w.t.Context(), path, spec)
				if err != nil {
					t.Fatal(err)
				}
				res, err := w.uploader(auto).File(w.t.Context(), path, spec)
				if err != nil || res.Parts != nil || res.Requests != alone.Requests || res.BytesSent != alone.BytesSent || res.Elapsed > alone.Elapsed || len(w.undivided()) != 1 {
					t.Errorf("%+v, want %+v; %q, %v", res, alone, w.undivided(), err)
				}
			})
		})
	}
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

// An upload is interrupted around the moment at which its first bytes divide it. The next call
// resumes it or starts over.
func TestAutoPartsNearButSlowInterrupted(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(20 * mib)
	for _, after := range []time.Duration{90, 125, 126, 140, 200, 300, 600} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			t.Parallel()
			inBubble(t, &fakegcs.Options{NoMD5: true, Rate: 4 * mib}, func(w *world) {
				path := w.file(content)
				ctx, cancel := context.WithTimeout(w.t.Context(), after*time.Millisecond)
				defer cancel()
				if _, err := w.uploader(auto).File(ctx, path, spec); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
				if _, err := w.uploader(auto).File(w.t.Context(), path, spec); err != nil {
					t.Fatalf("%v\n%s", err, w.trace())
				}
				w.wantOnlyObject(content)
			})
		})
	}
}

// The first bytes show that a connection is slow, but the bucket does not suit parts. The session
// that sent them continues over one connection.
func TestAutoPartsNearButSlowAndUnsuitable(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(12 * mib)
	inBubble(t, &fakegcs.Options{NoMD5: true, Rate: 16 * mib}, func(w *world) {
		w.patchBucket(`{"storageClass":"NEARLINE"}`)
		res, err := w.uploader(auto).File(w.t.Context(), w.file(content), upload.Spec{Bucket: "bkt", Object: "obj", IfGenerationMatch: new(int64)})
		started := w.srv.Stats().Ops[faults.OpStart]
		if err != nil || res.Parts != nil || res.BytesSent != 12*mib+res.BytesResent || res.BytesResent > 3*mib || len(w.undivided()) != 1 || started != 1 {
			t.Errorf("%+v, %q, %d sessions, %v", res, w.undivided(), started, err)
		}
		w.wantObject("obj", content)
		w.wantSaved(0)
	})
}
