package state_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/internal/require"
	"gcsup/internal/wiretest"
	"gcsup/session"
	"gcsup/session/internal/secrettest"
	"gcsup/session/state"
)

var newSamples = flag.Bool("new-samples", false, "write the samples of saved uploads that do not exist")

// keptUploads returns a saved upload of each kind, by the names of the files in testdata/v1.
func keptUploads(t *testing.T) map[string]*state.Upload {
	created := time.Date(2026, 11, 29, 18, 0, 0, 0, time.UTC)
	upload := func(object string, change func(*state.Upload)) *state.Upload {
		u := &state.Upload{
			ID: "kept-" + object, Endpoint: session.DefaultEndpoint,
			Spec:       session.Spec{Bucket: "bucket", Object: object},
			Session:    state.Session{URI: secrettest.URI(session.DefaultEndpoint), Created: created},
			SourcePath: "/data/" + object, Source: chunk.Identity{Size: 100 << 20, ModTimeNS: 1, ChangeTimeNS: 2, Device: 3, Inode: 4},
		}
		change(u)
		return u
	}
	parts := func(u *state.Upload, p *state.Parts) {
		u.URI, u.Parts, u.Source.Size = session.URI{}, p, 5<<20
	}
	multipart := wiretest.URI(t, session.DefaultEndpoint, "/bucket/object?uploadId=x")
	const etag = `"0123456789abcdef0123456789abcdef"`
	all := sample(t)
	all.ID = "kept-settings"
	return map[string]*state.Upload{
		"settings": all,
		"file": upload("file", func(u *state.Upload) {
			u.Committed, u.HighWater = 64<<20, 65<<20
			u.Checkpoints = []chunk.Checkpoint{{Offset: 64 << 20, CRC32C: 5}}
		}),
		"gzip": upload("gzip", func(u *state.Upload) {
			u.Spec.Gzip, u.Committed, u.HighWater = true, 1<<20, 2<<20
			u.Gzip = &state.GzipState{Size: 3 << 20, Source: chunk.Checkpoint{Offset: 50 << 20, CRC32C: 6}}
		}),
		"path": upload("path", func(u *state.Upload) { u.SourcePath = "/data/\xff not UTF-8" }),
		"identity": upload("identity", func(u *state.Upload) {
			u.SourcePath, u.SourceIdentity, u.Source = "", "row 17", chunk.Identity{Size: 100 << 20}
		}),
		"moved": upload("moved", func(u *state.Upload) { u.SourceVersion, u.MovedTo, u.MovedFrom = "v2", "kept-new", "kept-old" }),
		"spool": upload("spool", func(u *state.Upload) {
			u.SourcePath, u.SourceIdentity, u.Source, u.Spool = "", "command", chunk.Identity{}, &state.Spool{Dir: "/var/lib/spool"}
			u.Committed, u.HighWater = 1<<20, 2<<20
		}),
		"spool-in-parts": upload("spool-in-parts", func(u *state.Upload) {
			parts(u, &state.Parts{Size: 5 << 20, Upload: multipart, List: []state.Part{{Size: 6 << 20, ETag: etag, CRC32C: 9}, {Size: 5 << 20}, {Size: 1}}})
			u.SourcePath, u.SourceIdentity, u.Source, u.Spool = "", "command", chunk.Identity{}, &state.Spool{Dir: "/var/lib/spool"}
		}),
		"compose": upload("compose", func(u *state.Upload) {
			parts(u, &state.Parts{Size: 2 << 20, Prefix: "gcsup-parts/kept-compose-x/", Seen: 7, DeleteSources: true, List: []state.Part{
				{Generation: 8, CRC32C: 9},
				{Session: state.Session{URI: secrettest.URI(session.DefaultEndpoint), Created: created, Committed: 1 << 20, HighWater: 1 << 20}},
				{},
			}})
		}),
		"multipart": upload("multipart", func(u *state.Upload) {
			parts(u, &state.Parts{Size: 2 << 20, Upload: multipart, Joining: true, List: []state.Part{{ETag: etag, CRC32C: 9}, {}, {}}})
		}),
		"gzip-in-parts": upload("gzip-in-parts", func(u *state.Upload) {
			u.Spec.Gzip, u.Gzip = true, &state.GzipState{Source: chunk.Checkpoint{Offset: 4 << 20, CRC32C: 6}}
			parts(u, &state.Parts{Size: 2 << 20, Upload: multipart, List: []state.Part{{Size: 2 << 20, ETag: etag, CRC32C: 9}, {Size: 1 << 20}}})
		}),
		"stream-in-parts": upload("stream-in-parts", func(u *state.Upload) {
			u.SourcePath, u.SourceIdentity, u.Source = "", "command", chunk.Identity{}
			parts(u, &state.Parts{Prefix: "gcsup-parts/kept-stream-x/", Upload: multipart, Over: true, List: []state.Part{{Generation: 8}}})
			u.Source.Size = 0
		}),
	}
}

// TestKeptUploads reads the saved uploads in testdata, which an earlier version wrote, one of each kind. They are
// never rewritten. A version with another format reads them, too, and adds files for its own format in another
// directory. It also checks that this version writes what an earlier one reads, if no field was added.
func TestKeptUploads(t *testing.T) {
	t.Parallel()
	uploads := keptUploads(t)
	for name, want := range uploads {
		file := filepath.Join("testdata", "v1", name+".json")
		text, err := state.Encode(want)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) && *newSamples {
			require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, text, 0o666)))
		}
		kept, err := os.ReadFile(file)
		require.NoError(t, err)
		got, err := state.Decode(kept)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if !same(t, got, want) {
			t.Errorf("%s is not read as it was written", file)
		}
		if !bytes.Equal(text, kept) {
			t.Errorf("%s: this version writes\n%s, which an earlier one may refuse", file, text)
		}
		next := bytes.Replace(kept, []byte(`{"v":1,`), []byte(`{"v":2,`), 1)
		if _, err := state.Decode(next); !errors.Is(err, state.ErrVersion) || !strings.Contains(fmt.Sprint(err), "version 2, this program knows 1") {
			t.Errorf("%s with version 2: %v", name, err)
		}
	}
	files, err := filepath.Glob("testdata/v1/*")
	if err != nil || len(files) != len(uploads) {
		t.Errorf("%d files in testdata/v1, want %d (%v)", len(files), len(uploads), err)
	}
}
