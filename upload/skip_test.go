package upload_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
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
	"ReaderAt without identity": func(w *world, up *upload.Uploader, _ string, content []byte) (*upload.Result, error) {
		return up.ReaderAt(w.t.Context(), bytes.NewReader(content), int64(len(content)), "", spec)
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
						w.done(w.uploader().Bytes(w.t.Context(), tt.object, spec))
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
		w.fails(session.ErrInvalid)(with(upload.SkipIdentical).Reader(w.t.Context(), bytes.NewReader(content), spec))
		writer := with(upload.SkipExisting).NewWriter(w.t.Context(), spec)
		w.wantError(writer.Close(), session.ErrInvalid)
		if _, err := w.uploader().With(upload.CallOptions{Skip: 99}); !errors.Is(err, session.ErrInvalid) || !strings.Contains(err.Error(), "Skip(99)") {
			t.Errorf("an unknown rule: %v, want ErrInvalid", err)
		}
	})
}

// TestSkip checks which files of a batch each rule skips: with a listing, without one, and without a store. The rule is that
// of the call, unless the batch has one.
func TestSkip(t *testing.T) {
	t.Parallel()
	key, err := session.NewEncryptionKey(bytes.Repeat([]byte{1}, 32))
	require.NoError(t, err)
	old := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	edit := func(path string) error { return editQuietly(path, 1) }
	grow := func(path string) error { return errors.Join(appendTo(path, "x"), os.Chtimes(path, old, old)) }
	touch := func(path string) error { return os.Chtimes(path, old, old.Add(time.Hour)) }
	keep := func(string) error { return nil }
	plain, zip := upload.Spec{}, upload.Spec{Gzip: true}
	sealed, hashOnly := upload.Spec{EncryptionKey: key}, upload.Spec{EncryptionKey: key.WithoutSecret()} // the Options have the secret
	const no, exists, same, sameTime = upload.SkipNothing, upload.SkipExisting, upload.SkipIdentical, upload.SkipSameTime
	rules := [4]upload.Skip{exists, same, sameTime, upload.SkipSameContent}
	tests := []struct {
		name        string
		first, then upload.Spec // of the object, and of the file
		change      func(path string) error
		want        [4]upload.Skip // for each rule
	}{
		{"no object", plain, plain, keep, [4]upload.Skip{no, no, no, no}},
		{"no time", plain, plain, keep, [4]upload.Skip{exists, same, same, same}},
		{"unchanged", plain, plain, keep, [4]upload.Skip{exists, same, sameTime, same}},
		{"other bytes", plain, plain, edit, [4]upload.Skip{exists, no, sameTime, no}},
		{"other size", plain, plain, grow, [4]upload.Skip{exists, no, no, no}},
		{"other time", plain, plain, touch, [4]upload.Skip{exists, same, no, same}},
		{"compressed", zip, zip, keep, [4]upload.Skip{exists, same, sameTime, same}},
		{"compressed, other bytes", zip, zip, edit, [4]upload.Skip{exists, no, sameTime, no}},
		{"compressed, other size", zip, zip, grow, [4]upload.Skip{exists, no, no, no}},
		{"compressed, other time", zip, zip, touch, [4]upload.Skip{exists, same, no, same}},
		{"only the file is compressed", plain, zip, keep, [4]upload.Skip{exists, no, no, same}},
		{"only the object is compressed", zip, plain, keep, [4]upload.Skip{exists, no, no, same}},
		{"only the object is compressed, other bytes", zip, plain, edit, [4]upload.Skip{exists, no, no, no}},
		{"encrypted with the key", sealed, sealed, keep, [4]upload.Skip{exists, same, sameTime, same}},
		{"encrypted with the key of the hash", sealed, hashOnly, keep, [4]upload.Skip{exists, same, sameTime, same}},
		{"not encrypted with the key", plain, sealed, keep, [4]upload.Skip{exists, no, no, no}},
		{"not encrypted with the key of the hash", plain, hashOnly, keep, [4]upload.Skip{exists, no, no, no}},
		{"compressed by another version", zip, zip, keep, [4]upload.Skip{exists, no, sameTime, no}},
	}
	last := len(tests) - 1
	for r, rule := range rules {
		for _, manner := range []string{"one by one", "listed", "without a store"} {
			listed, size := manner == "listed", int64(1000)
			if manner == "without a store" {
				size = 3 * q // a session each
			}
			inBubble(t, nil, func(w *world) {
				up := w.uploader(zippedParts, func(o *upload.Options) {
					o.EncryptionKeys = []session.EncryptionKey{key}
					if manner == "without a store" {
						o.Store = nil
					}
				})
				jobs := w.jobs(len(tests), size)
				for i, tt := range tests {
					jobs[i].Spec.Gzip, jobs[i].Spec.EncryptionKey = tt.first.Gzip, tt.first.EncryptionKey
				}
				files(w.t.Context(), up, jobs[1:2], nil)
				writeTimes := &upload.BatchOptions{Skip: sameTime}
				files(w.t.Context(), up, jobs[2:last], writeTimes)
				upload.SetGzipLevel(up, 1)
				files(w.t.Context(), up, jobs[last:], writeTimes)
				upload.SetGzipLevel(up, gzip.HuffmanOnly) // as before
				for i, tt := range tests {
					require.NoError(t, tt.change(jobs[i].Path))
					info, err := os.Stat(jobs[i].Path)
					require.NoError(t, err)
					jobs[i].Size, jobs[i].ModTime = info.Size(), info.ModTime()
					jobs[i].Spec.Gzip, jobs[i].Spec.EncryptionKey = tt.then.Gzip, tt.then.EncryptionKey
				}
				opts, call := upload.BatchOptions{}, rule
				if listed {
					opts.Skip, opts.Listing, call = rule, &upload.Listing{Bucket: "bkt"}, exists
				}
				up = withCall(up, upload.CallOptions{Skip: call})
				for _, opts.DryRun = range []bool{true, false} {
					uploads := w.uploads()
					got := files(w.t.Context(), up, jobs, &opts)
					for i, tt := range tests {
						o := got[jobs[i].Spec.Object]
						if o.err != nil || o.Skipped != tt.want[r] || o.Planned != (opts.DryRun && tt.want[r] == no) {
							t.Errorf("%v, %s, dry run %v: %s: skipped %v, planned %v, error %v; want %v", rule, manner, opts.DryRun, tt.name, o.Skipped, o.Planned, o.err, tt.want[r])
						}
						if opts.DryRun || o.Skipped != no {
							continue
						}
						if encoded := tt.first.Gzip; rule == upload.SkipSameContent && o.Spec.Gzip != encoded {
							t.Errorf("%s: sent with gzip %v, but the object had %v", tt.name, o.Spec.Gzip, encoded)
						}
						content, err := os.ReadFile(jobs[i].Path)
						require.NoError(t, err)
						if o.Spec.Gzip {
							w.wantUnzipped(jobs[i].Spec.Object, content, true)
						} else {
							w.wantObject(jobs[i].Spec.Object, content)
						}
					}
					if n := w.uploads() - uploads; opts.DryRun && n > 0 {
						t.Errorf("%v: a dry run uploads %d files", rule, n)
					}
				}
			})
		}
	}
}

// uploads returns how many uploads the service saw.
func (w *world) uploads() int64 {
	ops := w.srv.Stats().Ops
	return ops[faults.OpInsert] + ops[faults.OpStart]
}

// TestSkipExistingAfterTheListing checks that an object that appears after the listing is not replaced.
func TestSkipExistingAfterTheListing(t *testing.T) {
	inBubble(t, nil, func(w *world) {
		jobs := w.jobs(1, 1000)
		files(w.t.Context(), w.uploader(), jobs, nil)
		jobs[0].Listed = true
		if o := files(w.t.Context(), w.uploader(), jobs, &upload.BatchOptions{Skip: upload.SkipExisting})["0"]; o.err != nil || o.Skipped != upload.SkipExisting {
			t.Errorf("skipped %v, error %v", o.Skipped, o.err)
		}
	})
}

// TestSkipAtFastClock checks that a file that was modified just before its
// upload is compared by its bytes, even if the clock of the service is ahead. An
// earlier version skipped the file if it was modified again in the same second.
func TestSkipAtFastClock(t *testing.T) {
	inBubble(t, &fakegcs.Options{ClockSkew: 10 * time.Second}, func(w *world) {
		jobs := w.jobs(3, 10)
		for i, age := range []time.Duration{500 * time.Millisecond, 5 * time.Second, -time.Hour} {
			jobs[i].ModTime = time.Now().Add(-age)
			require.NoError(t, os.Chtimes(jobs[i].Path, jobs[i].ModTime, jobs[i].ModTime))
		}
		opts := &upload.BatchOptions{Skip: upload.SkipSameTime}
		files(w.t.Context(), w.uploader(), jobs, opts)
		for i := range jobs {
			content := []byte("other text")
			require.NoError(t, os.WriteFile(jobs[i].Path, content, 0o600))
			require.NoError(t, os.Chtimes(jobs[i].Path, jobs[i].ModTime, jobs[i].ModTime))
			jobs[i].Listed, jobs[i].Object = true, lookUp(t, w, jobs[i].Spec)
		}
		got := files(w.t.Context(), w.uploader(), jobs, opts)
		for i, want := range []upload.Skip{upload.SkipNothing, upload.SkipSameTime, upload.SkipNothing} {
			if o := got[fmt.Sprint(i)]; o.err != nil || o.Skipped != want {
				t.Errorf("file %d: skipped %v, error %v, want %v", i, o.Skipped, o.err, want)
			}
		}
	})
}
