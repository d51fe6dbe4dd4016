package upload_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"gcsup/fakegcs/faults"
	"gcsup/internal/bucket"
	"gcsup/internal/checksum"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
)

// makesObject reports whether a request makes the object at the destination, in one of the four ways.
func makesObject(way string, req *http.Request) bool {
	switch query := req.URL.Query(); way {
	case "insert":
		return query.Get("uploadType") == "multipart"
	case "compose":
		return strings.HasSuffix(req.URL.Path, "/o/obj/compose")
	case "multipart":
		return query.Has("uploadId") && req.Method == http.MethodPost
	}
	var from, last, total int64
	_, err := fmt.Sscanf(req.Header.Get("Content-Range"), "bytes %d-%d/%d", &from, &last, &total)
	return err == nil && last+1 == total
}

// TestSecondWriter checks that no upload replaces the object of another client because a reply was
// lost. The reply to the request that makes the object is lost, and then another client writes the
// object or deletes it, before the next request of the same process or of the next one.
func TestSecondWriter(t *testing.T) {
	t.Parallel()
	earlier, other := []byte("from before"), []byte("of another client")
	for _, way := range []struct {
		name    string
		size    int64
		options func(*upload.Options)
	}{
		{"insert", 1000, func(*upload.Options) {}},
		{"session", large, largeChunks},
		{"multipart", multipartLarge, byMultipart},
		{"compose", partsLarge, byParts},
	} {
		for _, tt := range []struct {
			name     string
			executed bool // the request whose reply is lost made the object
			old      bool // there is an object before the upload
			deletes  bool // the other client deletes the object
			killed   bool // and the process is killed
		}{
			{"executed", true, false, false, false},
			{"executed in the place of an old object", true, true, false, false},
			{"not executed", false, true, false, false},
			{"executed, and killed", true, false, false, true},
			{"executed in the place of an old object, and killed", true, true, false, true},
			{"not executed, and killed", false, false, false, true},
			{"executed, and deleted", true, false, true, false},
			{"executed in the place of an old object, and deleted", true, true, true, false},
			{"executed, deleted and killed", true, true, true, true},
		} {
			parts := way.name == "multipart" || way.name == "compose"
			if tt.killed && way.name == "insert" {
				continue // nothing is saved: the next process has another upload
			}
			t.Run(way.name+" "+tt.name, func(t *testing.T) {
				inBubble(t, nil, func(w *world) {
					content := data(way.size)
					path := w.file(content)
					client, err := session.NewClient(w.http, "http://gcs.test")
					require.NoError(t, err)
					write := func(content []byte) {
						if r := client.Insert(w.t.Context(), spec, int64(len(content)), checksum.Update(0, content), bytes.NewReader(content)); r.Status != 200 {
							t.Errorf("the other client: %+v", r)
						}
					}
					if tt.old {
						write(earlier)
					}
					ctx, die := context.WithCancel(w.t.Context())
					defer die()
					p := &process{Store: w.store}
					plain, lost := w.http.Transport, false
					w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
						if p.dead.Load() {
							return nil, errDead
						}
						if lost || !makesObject(way.name, req) {
							return plain.RoundTrip(req)
						}
						lost = true
						if tt.executed {
							resp, err := plain.RoundTrip(req)
							if err != nil || resp.StatusCode != http.StatusOK {
								t.Errorf("the service did not make the object: %v %v", resp, err)
								return resp, err
							}
							_ = resp.Body.Close()
						} else {
							_, _ = io.Copy(io.Discard, req.Body)
							_ = req.Body.Close()
						}
						if tt.deletes {
							bucket.Delete(w.t.Context(), client, spec)
						} else {
							write(other)
						}
						if tt.killed {
							p.dead.Store(true)
							die()
						}
						return nil, errReset
					})}
					res, err := w.uploader(way.options, func(o *upload.Options) { o.Store = p }).File(ctx, path, spec)
					w.http = &http.Client{Transport: plain}
					if !lost {
						t.Fatalf("no reply was lost\n%s", w.trace())
					}
					if tt.killed {
						res, err = w.uploader(way.options).File(w.t.Context(), path, spec)
					}

					// A session reports what it has made, and what it has not made it makes later, like any writer.
					unknown := parts || way.name == "insert"
					if tt.deletes {
						unknown = parts && tt.old // absent as before, it is made again
					}
					switch {
					case unknown && !errors.Is(err, session.ErrOutcomeUnknown), !unknown && err != nil:
						t.Fatalf("error %v, outcome unknown: %v\n%s", err, unknown, w.trace())
					case tt.deletes && (unknown || way.name == "session" && !tt.killed): // the next process looks
						w.wantNoObject("obj")
					case !unknown && (way.name != "session" || !tt.executed || tt.deletes):
						w.wantObject("obj", content)
					default:
						w.wantObject("obj", other)
					}
					if !unknown || !parts {
						return
					}
					if !res.Resumable {
						t.Error("the upload is not resumable")
					}

					// What is committed stays, and later calls replace nothing, either.
					from := len(w.srv.Requests())
					w.fails(session.ErrOutcomeUnknown)(w.uploader(way.options).File(w.t.Context(), path, spec))
					for saved, err := range w.uploader(way.options).Prune(w.t.Context(), nil) {
						if !errors.Is(err, session.ErrOutcomeUnknown) || saved.Deleted {
							t.Errorf("prune: %v, deleted %v", err, saved.Deleted)
						}
					}
					for _, r := range w.srv.Requests()[from:] {
						if r.Op != faults.OpGet {
							t.Errorf("the next call: %s\n%s", r.Op, w.trace())
						}
					}
					w.wantSaved(1)

					// The caller decides.
					w.done(w.uploader(way.options, func(o *upload.Options) { o.Restart = true }).File(w.t.Context(), path, spec))
					w.wantOnlyObject(content)
					w.wantNoUploads()
					w.wantSaved(0)
				})
			})
		}
	}
}
