package upload_test

import (
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
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
						f.take(w.deleteSaved)
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
		require.NoError(t, truncate(filepath.Join(w.state, res.ID+".json"), 100))
		w.done(w.uploader(byParts).File(w.t.Context(), path, spec))
		warnings := w.causes(upload.Warning)
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
	for _, test := range []struct {
		with  func(*upload.Options)
		fault faults.Fault
		want  error
		text  string
	}{
		{byMultipart, refusing(faults.OpPartsComplete, 416), session.ErrProtocol, "complete: protocol error: 416 "},
		{byParts, refusing(faults.OpCompose, 416), session.ErrProtocol, "compose: protocol error: 416 "},
		{byParts, refusing(faults.OpCompose, 412), session.ErrProtocol, "compose: protocol error: 412 "},
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
