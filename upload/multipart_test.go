package upload_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/upload"
)

// multipartLarge is the size of a file that byMultipart sends in 3 parts.
const multipartLarge = 2*session.MultipartMinPart + 1

// byMultipart sends a file in parts of 5 MiB of a multipart upload, over 2 connections.
func byMultipart(o *upload.Options) {
	o.Parallel = upload.InParts(2, session.MultipartMinPart).By(upload.ByMultipart)
}

// wantNoUploads fails if there is a multipart upload.
func (w *world) wantNoUploads() {
	w.t.Helper()
	if n := w.multipartUploads(); n != 0 {
		w.t.Errorf("%d multipart uploads are left", n)
	}
}

// multipartUploads returns the number of multipart uploads.
func (w *world) multipartUploads() int {
	w.t.Helper()
	w.srv.ClearFaults()
	resp, err := w.http.Get("http://gcs.test/bkt?uploads")
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(body), "<ListMultipartUploadsResult") {
		w.t.Fatalf("%s %v", body, err)
	}
	return strings.Count(string(body), "<Upload>")
}

// A file is sent by a multipart upload, each byte once, and nothing is left. That is the
// way of a file without a precondition.
func TestMultipart(t *testing.T) {
	t.Parallel()
	content := data(multipartLarge)
	for name, with := range map[string]func(*upload.Options){
		"by multipart": byMultipart,
		"by either":    func(o *upload.Options) { o.Parallel = upload.InParts(2, session.MultipartMinPart) },
		"no store":     func(o *upload.Options) { byMultipart(o); o.Store = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(w *world) {
				attributes := upload.Spec{
					Bucket: "bkt", Object: "dir/ö bj?", ContentType: "text/x", CacheControl: "no-store", StorageClass: "NEARLINE",
					Metadata: map[string]string{"k": "v"}, CustomTime: time.Unix(1e9, 0), KMSKeyName: "projects/p/locations/l/keyRings/r/cryptoKeys/k",
				}
				res, err := w.uploader(with).File(w.t.Context(), w.file(content), attributes)
				if err != nil {
					t.Fatalf("%v\n%s", err, w.trace())
				}
				o := res.Object
				if res.BytesSent != multipartLarge || res.BytesReread != 0 || o.ContentType != "text/x" || o.CacheControl != "no-store" || o.StorageClass != "NEARLINE" ||
					o.Metadata["k"] != "v" || o.CustomTime.Unix() != 1e9 || o.KMSKeyName == "" || o.MD5 != nil || !o.HasCRC32C {
					t.Errorf("%+v %+v", res, o)
				}
				w.wantObject(attributes.Object, content)
				w.wantSaved(0)
				w.wantNoUploads()
				w.wantNoLeftovers()
			})
		})
	}
}

// What a multipart upload does not have is sent in another way, or refused.
func TestMultipartUnsuitable(t *testing.T) {
	t.Parallel()
	content := data(multipartLarge)
	conditional := spec
	conditional.IfGenerationMatch = new(int64)
	held := spec
	held.TemporaryHold = true
	either := func(o *upload.Options) { o.Parallel = upload.InParts(2, session.MultipartMinPart) }
	for _, test := range []struct {
		name  string
		spec  upload.Spec
		with  func(*upload.Options)
		fault bool // the service refuses multipart uploads
		err   error
		parts int64 // composed; 0 means one connection
	}{
		{"a precondition", conditional, byMultipart, false, session.ErrInvalid, 0},
		{"either, with a precondition", conditional, either, false, nil, 3},
		{"a hold", held, byMultipart, false, nil, 0},
		{"either, with a hold", held, either, false, nil, 3},
		{"refused", spec, byMultipart, true, session.ErrPermission, 0},
		{"either, refused", spec, either, true, nil, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(w *world) {
				if test.fault {
					w.addFaults(fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPartsStart}, Times: -1, Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 403, Reason: "forbidden"}})
				}
				res, err := w.uploader(test.with).File(w.t.Context(), w.file(content), test.spec)
				if !errors.Is(err, test.err) {
					t.Fatalf("%v\n%s", err, w.trace())
				}
				w.wantSaved(0)
				if test.err != nil {
					w.wantNoObject("obj")
					return
				}
				if res.Object.ComponentCount != test.parts {
					t.Errorf("%d components\n%s", res.Object.ComponentCount, w.trace())
				}
				if warned := w.saw(upload.Warning) > 0; warned != (test.parts == 0) {
					t.Errorf("a warning: %v", warned)
				}
				w.wantObject("obj", content)
			})
		})
	}
}

// Each connection has a limit: eight take an eighth of the time of one.
func TestMultipartConnections(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(8 * session.MultipartMinPart)
	took := map[int]time.Duration{}
	for _, n := range []int{1, 8} {
		inBubble(t, &fakegcs.Options{NoMD5: true, Rate: 20 * mib}, func(w *world) {
			path := w.file(content)
			began := time.Now()
			if _, err := w.uploader(func(o *upload.Options) { o.Parallel = upload.InParts(n, session.MultipartMinPart).By(upload.ByMultipart) }).File(w.t.Context(), path, spec); err != nil {
				t.Fatal(err)
			}
			took[n] = time.Since(began)
			w.wantObject("obj", content)
		})
	}
	if ratio := float64(took[8]) / float64(took[1]); ratio > 1.0/7 {
		t.Errorf("one connection took %v, eight took %v: %.3f", took[1], took[8], ratio)
	}
}

// Every exchange of a multipart upload fails, before, during and after, at each position.
func TestMultipartFaults(t *testing.T) {
	t.Parallel()
	content := data(multipartLarge)
	for _, op := range []fakegcs.Op{fakegcs.OpPartsStart, fakegcs.OpPartsPut, fakegcs.OpPartsList, fakegcs.OpPartsComplete, fakegcs.OpGet} {
		for _, do := range []fakegcs.Action{
			{Effect: fakegcs.EffectStatus, Status: 503}, {Effect: fakegcs.EffectStatus, Status: 429}, {Effect: fakegcs.EffectReset},
			{Effect: fakegcs.EffectLoseReply}, {Effect: fakegcs.EffectCutReply}, {Effect: fakegcs.EffectStall},
		} {
			t.Run(fmt.Sprintf("%s %s %d", op, do.Effect, do.Status), func(t *testing.T) {
				t.Parallel()
				for skip := range testsize.FullOnce(3, 1) {
					inBubble(t, &fakegcs.Options{}, func(w *world) { // with MD5, as the service
						w.addFaults(fakegcs.Fault{Match: fakegcs.Match{Op: op}, Skip: skip, Do: do})
						res, err := w.uploader(byMultipart).File(w.t.Context(), w.file(content), spec)
						if err != nil {
							t.Fatalf("position %d: %v\n%s", skip, err, w.trace())
						}
						again := res.BytesSent - multipartLarge
						if lost := do.Effect == fakegcs.EffectLoseReply || do.Effect == fakegcs.EffectCutReply; again > session.MultipartMinPart || lost && again > 1 { // a byte may go into a connection that is closed
							t.Errorf("position %d: sent %d bytes again\n%s", skip, again, w.trace())
						}
						w.wantObject("obj", content)
						w.wantSaved(0)
						if op != fakegcs.OpPartsStart { // a lost one leaves an upload without parts
							w.wantNoUploads()
						}
					})
				}
			})
		}
	}
}

// A multipart upload is interrupted. The next call continues each part that is finished, and
// those that the service has but the Token does not.
func TestMultipartResume(t *testing.T) {
	t.Parallel()
	const size = 4*session.MultipartMinPart + 1
	content := data(size)
	for stopAt := range int64(5) {
		t.Run(fmt.Sprint(stopAt), func(t *testing.T) {
			t.Parallel()
			inBubble(t, &fakegcs.Options{Rate: 8 * mib, Latency: 10 * time.Millisecond}, func(w *world) {
				path := w.file(content)
				ctx, stop := context.WithTimeout(w.t.Context(), time.Duration(stopAt)*300*time.Millisecond+20*time.Millisecond)
				defer stop()
				first, err := w.uploader(byMultipart).File(ctx, path, spec)
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("%v\n%s", err, w.trace())
				}
				if !first.Resumable {
					w.wantSaved(0)
					w.wantNoUploads()
					return
				}
				if held, err := w.uploader(byMultipart).Query(w.t.Context(), first.ID); err != nil || held.State != upload.SessionOpen {
					t.Errorf("the service holds %+v, %v", held, err)
				}
				res, err := w.uploader(func(o *upload.Options) { o.Parallel = upload.InParts(1, 0).By(upload.ByCompose) }).File(w.t.Context(), path, spec)
				if err != nil {
					t.Fatalf("%v\n%s", err, w.trace())
				}
				if !res.Resumed || res.ResumedFrom+res.BytesSent != size || stopAt > 2 && res.ResumedFrom == 0 {
					t.Errorf("resumed %v from %d, sent %d of %d\n%s", res.Resumed, res.ResumedFrom, res.BytesSent, size, w.trace())
				}
				w.wantObject("obj", content)
				w.wantSaved(0)
				w.wantNoUploads()
			})
		})
	}
}
