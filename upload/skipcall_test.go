package upload_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/session"
	"gcsup/upload"
)

// calls are the calls of an Uploader whose source can be compared with an object. path is
// a file with the given content.
var calls = map[string]func(w *world, up *upload.Uploader, path string, content []byte) (*upload.Result, error){
	"File": func(w *world, up *upload.Uploader, path string, _ []byte) (*upload.Result, error) {
		return up.File(w.t.Context(), path, spec)
	},
	"ReaderAt": func(w *world, up *upload.Uploader, _ string, content []byte) (*upload.Result, error) {
		return up.ReaderAt(w.t.Context(), bytes.NewReader(content), int64(len(content)), "v1", spec)
	},
	"Bytes": func(w *world, up *upload.Uploader, _ string, content []byte) (*upload.Result, error) {
		return up.Bytes(w.t.Context(), content, spec)
	},
	"FS": func(w *world, up *upload.Uploader, _ string, content []byte) (*upload.Result, error) {
		return up.FS(w.t.Context(), fstest.MapFS{"f": {Data: content, ModTime: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)}}, "f", spec)
	},
}

// TestCallSkip checks for each call and rule which existing objects it leaves alone.
func TestCallSkip(t *testing.T) {
	t.Parallel()
	const no = upload.SkipNothing
	for name, call := range calls {
		for _, size := range []int64{1000, large} {
			if size == large && testing.Short() {
				continue
			}
			content := random(size)
			for _, tt := range []struct {
				rule   upload.Skip
				object []byte // the existing one; nil if there is none
				want   upload.Skip
			}{
				{upload.SkipExisting, nil, no},
				{upload.SkipExisting, content[1:], upload.SkipExisting},
				{upload.SkipIdentical, nil, no},
				{upload.SkipIdentical, content, upload.SkipIdentical},
				{upload.SkipIdentical, flipped(content, 1), no},
				{upload.SkipIdentical, content[1:], no},
				{upload.SkipSameTime, content, upload.SkipIdentical}, // the object has no time
				{upload.SkipSameTime, flipped(content, 1), no},
				{upload.SkipSameContent, content, upload.SkipIdentical},
				{no, content, no},
			} {
				inBubble(t, nil, func(w *world) {
					path := w.file(content)
					if tt.object != nil {
						if _, err := w.uploader().Bytes(w.t.Context(), tt.object, spec); err != nil {
							t.Fatal(err)
						}
					}
					before := w.srv.Stats().Ops
					up := withCall(w.uploader(largeChunks), upload.CallOptions{Skip: tt.rule})
					res, err := call(w, up, path, content)
					if err != nil || res.Skipped != tt.want {
						t.Errorf("%s of %d bytes, %v, %d bytes exist: skipped %v, %v, want %v", name, size, tt.rule, len(tt.object), res.Skipped, err, tt.want)
					}
					if tt.want != no {
						after := w.srv.Stats().Ops
						for _, op := range []faults.Op{faults.OpInsert, faults.OpPut, faults.OpFinalize} {
							if after[op] != before[op] {
								t.Errorf("%s, %v: sent data by %s", name, tt.rule, op)
							}
						}
						w.wantObject("obj", tt.object)
					} else {
						w.wantObject("obj", content)
					}
					w.wantSaved(0)
				})
			}
		}
	}
}

// TestCallSkipSameTime checks that a file whose time is that of its object is not read,
// and that a changed time or size causes an upload.
func TestCallSkipSameTime(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		content := data(1000)
		path := w.file(content)
		set := func(at time.Time) {
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
			w.letPass(path)
		}
		old := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
		up := withCall(w.uploader(), upload.CallOptions{Skip: upload.SkipSameTime})
		for _, tt := range []struct {
			at      time.Time
			content []byte
			want    upload.Skip
		}{
			{old, content, upload.SkipNothing},
			{old, content, upload.SkipSameTime},
			{old, flipped(content, 1), upload.SkipSameTime}, // the bytes are not compared
			{old.Add(time.Hour), flipped(content, 1), upload.SkipNothing},
			{old.Add(time.Hour), content[1:], upload.SkipNothing},
		} {
			if err := os.WriteFile(path, tt.content, 0o600); err != nil {
				t.Fatal(err)
			}
			set(tt.at)
			res, err := up.File(w.t.Context(), path, spec)
			if err != nil || res.Skipped != tt.want || res.Object == nil {
				t.Errorf("%v, %d bytes: %+v, %v, want %v", tt.at, len(tt.content), res, err, tt.want)
			}
		}
		w.wantObject("obj", content[1:])
	})
}

// TestStreamSkip checks that a stream is left out only if the object exists, and is then
// not read, and that other rules are errors.
func TestStreamSkip(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		content := data(1000)
		with := func(rule upload.Skip) *upload.Uploader { return withCall(w.uploader(), upload.CallOptions{Skip: rule}) }
		for i, want := range []upload.Skip{upload.SkipNothing, upload.SkipExisting} {
			r := bytes.NewReader(content[i:])
			res, err := with(upload.SkipExisting).Reader(w.t.Context(), r, spec)
			if err != nil || res.Skipped != want || r.Len() != i*(len(content)-1) {
				t.Errorf("call %d: skipped %v, %v, and %d bytes are left", i, res.Skipped, err, r.Len())
			}
		}
		w.wantObject("obj", content)
		if _, err := with(upload.SkipIdentical).Reader(w.t.Context(), bytes.NewReader(content), spec); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("Reader with SkipIdentical: %v, want ErrInvalid", err)
		}
		writer := with(upload.SkipExisting).NewWriter(w.t.Context(), spec)
		if err := writer.Close(); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("Writer: %v, want ErrInvalid", err)
		}
		if _, err := w.uploader().With(upload.CallOptions{Skip: 99}); !errors.Is(err, session.ErrInvalid) || !strings.Contains(err.Error(), "Skip(99)") {
			t.Errorf("an unknown rule: %v, want ErrInvalid", err)
		}
	})
}

// TestFilesWithCallSkip checks that the rule of CallOptions applies to a batch without one.
func TestFilesWithCallSkip(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		jobs := w.jobs(2, 1000)
		files(w.t.Context(), w.uploader(), jobs, nil)
		up := withCall(w.uploader(), upload.CallOptions{Skip: upload.SkipIdentical})
		for name, tt := range map[string]struct {
			opts *upload.BatchOptions
			want upload.Skip
		}{
			"no rule":      {nil, upload.SkipIdentical},
			"another rule": {&upload.BatchOptions{Skip: upload.SkipExisting}, upload.SkipExisting},
		} {
			for object, o := range files(w.t.Context(), up, jobs, tt.opts) {
				if o.err != nil || o.Skipped != tt.want {
					t.Errorf("%s: %s: skipped %v, %v, want %v", name, object, o.Skipped, o.err, tt.want)
				}
			}
		}
	})
}
