package upload_test

import (
	"errors"
	"testing"

	"gcsup/internal/multipart"
	"gcsup/internal/require"
	"gcsup/upload"
)

// dividedUploads are uploads in parts that are interrupted when bytes of them are committed.
var dividedUploads = []struct {
	name string
	with func(*upload.Options)
	size int64
}{
	{"compose", byParts, partsLarge},
	{"multipart", byMultipart, 4*multipart.MinPart + 1},
}

// TestPartsWithoutTheOption checks that an Uploader without Options.Parallel resumes,
// queries, cancels and prunes a saved upload in parts.
func TestPartsWithoutTheOption(t *testing.T) {
	t.Parallel()
	for _, tt := range dividedUploads {
		for name, call := range map[string]func(w *world, up *upload.Uploader, path, id string, content []byte) error{
			"File": func(w *world, up *upload.Uploader, path, _ string, content []byte) error {
				res, err := up.File(w.t.Context(), path, spec)
				if err == nil && !res.Resumed {
					err = errors.New("not resumed")
				}
				w.wantOnlyObject(content)
				return err
			},
			"Resume": func(w *world, up *upload.Uploader, _, id string, content []byte) error {
				_, err := up.Resume(w.t.Context(), id)
				w.wantOnlyObject(content)
				return err
			},
			"Query": func(w *world, up *upload.Uploader, _, id string, _ []byte) error {
				held, err := up.Query(w.t.Context(), id)
				if err == nil && (held.State != upload.SessionOpen || held.Stored == 0) {
					t.Errorf("the service holds %+v", held)
				}
				return err
			},
			"Cancel": func(w *world, up *upload.Uploader, _, id string, _ []byte) error {
				err := up.Cancel(w.t.Context(), id)
				w.wantSaved(0)
				w.wantNoLeftovers()
				w.wantNoUploads()
				return err
			},
			"Restart": func(w *world, up *upload.Uploader, path, _ string, content []byte) error {
				_, err := w.uploader(func(o *upload.Options) { o.Restart = true }).File(w.t.Context(), path, spec)
				w.wantOnlyObject(content)
				return err
			},
		} {
			t.Run(tt.name+" "+name, func(t *testing.T) {
				t.Parallel()
				inBubble(t, unhurried(), func(w *world) {
					content := data(tt.size)
					path := w.file(content)
					first := w.uploader(tt.with)
					id, result := w.begin(first, path, spec)
					require.NoError(t, first.Pause(w.t.Context(), id))
					<-result
					if err := call(w, w.uploader(), path, id, content); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}
