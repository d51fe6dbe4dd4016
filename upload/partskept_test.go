package upload_test

import (
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// Another process deletes the saved upload while its parts are sent. Only this process
// knows what the service stores, and removes it.
func TestPartsOfADeletedUpload(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for name, with := range map[string]func(*upload.Options){"compose": byParts, "multipart": byMultipart} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(w *world) {
				f, plain := newFleeting(w.store), w.http.Transport
				puts := 0
				w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
					resp, err := plain.RoundTrip(req)
					w.mu.Lock()
					defer w.mu.Unlock()
					if puts++; puts == 6 {
						w.deleteSaved()
						f.lose(errTaken)
					}
					return resp, err
				})}
				content := data(partsLarge)
				if name == "multipart" {
					content = data(multipartLarge)
				}
				res, err := w.uploader(with, func(o *upload.Options) { o.Store, o.Observer = f, nil }).File(w.t.Context(), w.file(content), spec)
				if !errors.Is(err, state.ErrInUse) || res.Leftover != nil {
					t.Errorf("%v, %v", err, res.Leftover)
				}
				w.http = &http.Client{Transport: plain}
				w.wantNoObject("obj")
				w.wantNoLeftovers()
				w.wantNoParts()
				w.wantNoUploads()
			})
		})
	}
}

// A damaged saved upload does not tell what it stored in parts. The next call warns of it.
func TestPartsOfADamagedUpload(t *testing.T) {
	t.Parallel()
	inBubble(t, &fakegcs.Options{NoMD5: true, Rate: mib}, func(w *world) {
		path := w.file(data(partsLarge))
		res := w.interruptParts(path)
		if err := truncate(filepath.Join(w.state, res.ID+".json"), 100); err != nil {
			t.Fatal(err)
		}
		var warnings []string
		up := w.uploader(byParts, func(o *upload.Options) {
			o.Observer = func(e upload.Event) {
				if e.Kind == upload.Warning {
					warnings = append(warnings, e.Cause)
				}
			}
		})
		if _, err := up.File(w.t.Context(), path, spec); err != nil {
			t.Fatal(err)
		}
		pattern := "gs://bkt/gcsup-parts/" + res.ID + "-*"
		if len(warnings) != 1 || !strings.Contains(warnings[0], pattern) {
			t.Errorf("warnings %q, want one with %s", warnings, pattern)
		}
		for _, name := range w.temporaryObjects() {
			if matched, err := filepath.Match("gcsup-parts/"+res.ID+"-*/*", name); !matched || err != nil {
				t.Errorf("%s is left, and was not named", name)
			}
		}
	})
}

// deleteSaved deletes the saved uploads, like another process.
func (w *world) deleteSaved() {
	ids, err := w.store.List(w.t.Context())
	if err != nil {
		w.t.Error(err)
	}
	for _, id := range ids {
		if err := w.store.Delete(w.t.Context(), id); err != nil {
			w.t.Error(err)
		}
	}
}

// A request for the whole file that is refused does not count as one at its beginning, and
// does not advise to create a bucket that exists.
func TestPartsRefusalTexts(t *testing.T) {
	t.Parallel()
	refused := func(op faults.Op, status int) faults.Fault {
		return faults.Fault{Match: faults.Match{Op: op}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: status}}
	}
	for _, test := range []struct {
		with  func(*upload.Options)
		fault faults.Fault
		want  error
		text  string
	}{
		{byMultipart, refused(faults.OpPartsComplete, 416), session.ErrProtocol, "complete: protocol error: 416 "},
		{byParts, refused(faults.OpCompose, 416), session.ErrProtocol, "compose: protocol error: 416 "},
		{byParts, refused(faults.OpCompose, 412), session.ErrProtocol, "compose: protocol error: 412 "},
	} {
		inBubble(t, nil, func(w *world) {
			w.addFaults(test.fault)
			path := w.file(data(multipartLarge))
			res, err := w.uploader(test.with).File(w.t.Context(), path, spec)
			if !errors.Is(err, test.want) || !res.Resumable {
				t.Fatalf("%v, resumable %v", err, res.Resumable)
			}
			if e, _ := errors.AsType[*session.Error](err); e.Offset != multipartLarge || !strings.HasPrefix(err.Error(), test.text) {
				t.Errorf("at offset %d: %v", e.Offset, err)
			}
			w.srv.ClearFaults()
			if res, err := w.uploader(test.with).File(w.t.Context(), path, spec); err != nil || res.BytesSent != 0 {
				t.Errorf("sent %d bytes again, %v", res.BytesSent, err)
			}
		})
	}
}

// A proxy answers the first request with a 404. The destination is not found; the request
// is not invalid.
func TestPartsProxyFirst(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.addFaults(faults.Fault{Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 404, Body: "<html>no such page</html>", ContentType: "text/html"}})
		_, err := w.uploader(byMultipart).File(w.t.Context(), w.file(data(multipartLarge)), spec)
		if !errors.Is(err, session.ErrNotFound) || errors.Is(err, session.ErrInvalid) || !strings.Contains(err.Error(), "not from Cloud Storage") {
			t.Error(err)
		}
	})
}

// Two machines resume one upload by compose at the same time, without a common store. No
// error says that a precondition failed: the caller set none.
func TestPartsTwoMachines(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(partsLarge)
	inBubble(t, &fakegcs.Options{NoMD5: true, Rate: mib}, func(w *world) {
		path := w.file(content)
		res := w.interruptParts(path)
		token, err := w.store.Load(w.t.Context(), res.ID)
		if err != nil {
			t.Fatal(err)
		}
		other := newMemoryStore()
		if err := other.Save(w.t.Context(), token); err != nil {
			t.Fatal(err)
		}
		errs := make(chan error)
		for _, store := range []state.Store{w.store, other} {
			up := w.uploader(byParts, func(o *upload.Options) { o.Store, o.Observer = store, nil })
			go func() {
				_, err := up.Resume(w.t.Context(), res.ID)
				errs <- err
			}()
		}
		done := 0
		for range 2 {
			switch err := <-errs; {
			case err == nil:
				done++
			case errors.Is(err, session.ErrPrecondition), !errors.Is(err, session.ErrUnexpectedData) && !errors.Is(err, session.ErrProtocol) && !errors.Is(err, session.ErrChecksum) && !errors.Is(err, session.ErrSessionLost):
				t.Errorf("error = %v", err)
			}
		}
		if done == 0 { // each spoiled the upload of the other
			if _, err := w.uploader(byParts).File(w.t.Context(), path, spec); err != nil {
				t.Error(err)
			}
		}
		w.wantObject("obj", content)
	})
}
