package mirror

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"gcsup/internal/objectmeta"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/tree"
)

// jobsOf yields a job of 5 bytes for each name. NAME!KIND is an entry of that kind, and NAME!
// cannot be read.
func jobsOf(texts string) iter.Seq[upload.Job] {
	return func(yield func(upload.Job) bool) {
		for _, text := range strings.Fields(texts) {
			name, kind, failed := strings.Cut(text, "!")
			job := upload.Job{Path: name, Spec: upload.Spec{Bucket: "bkt", Object: name}, Size: 5, ModTime: time.Unix(1000, 0)}
			switch {
			case kind != "":
				job.Err = fmt.Errorf("%s: %w", name, &tree.EntryError{Kind: tree.Kind(kind)})
			case failed:
				job.Err = errors.New("unreadable")
			}
			if !yield(job) {
				return
			}
		}
	}
}

// objectsOf yields an object of 5 bytes for each name. NAME=N has N bytes, and NAME@N the
// modification time N. ERROR is the end of a listing that failed.
func objectsOf(texts string) iter.Seq2[*session.Object, error] {
	return func(yield func(*session.Object, error) bool) {
		for _, text := range strings.Fields(texts) {
			if text == "ERROR" {
				yield(nil, session.ErrNotFound)
				return
			}
			o := &session.Object{Bucket: "bkt", Name: text, Size: 5, Generation: 1, Created: time.Unix(2000, 0)}
			if name, n, ok := strings.Cut(text, "="); ok {
				o.Name = name
				_, _ = fmt.Sscan(n, &o.Size)
			}
			if name, n, ok := strings.Cut(text, "@"); ok {
				o.Name, o.FileModTime = name, objectmeta.ParseFileModTime(n)
			}
			if !yield(o, nil) {
				return
			}
		}
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		files, objects string
		skip           upload.Skip
		deleteExcluded bool
		want           string
		err            error
	}{
		{name: "nothing"},
		{name: "new files", files: "a b", want: "upload a, upload b"},
		{name: "no files", objects: "a b", want: "delete a, delete b"},
		{name: "same", files: "a b", objects: "a b=6", want: "compare a, upload b"},
		{name: "between", files: "b d", objects: "a b c d e", want: "delete a, compare b, delete c, compare d, delete e"},
		// A directory is in the order of its name with a slash.
		{name: "order of bytes", files: "a.txt a/b a0", objects: "a- a.txt a/a a/b a0", want: "delete a-, compare a.txt, delete a/a, compare a/b, compare a0"},
		{name: "same time", files: "a b c", objects: "a@1000 b@1001 c", skip: upload.SkipSameTime, want: "keep a, upload b, compare c"},
		{name: "skipped link", files: "a!link_outside c", objects: "a a-b a/x a0 c", want: "skip a, protect a skipped, delete a-b, protect a/x skipped, delete a0, compare c"},
		{name: "vanished file", files: "a!vanished", objects: "a a/x", want: "skip a, protect a skipped, delete a/x"},
		{name: "vanished directory", files: "a/!vanished", objects: "a a/x a/y/z a0", want: "delete a, skip a/, protect a/x skipped, protect a/y/z skipped, delete a0"},
		{name: "left out", files: "a!left_out b", objects: "a b", want: "skip a, protect a skipped, compare b"},
		{name: "left out and deleted", files: "a!left_out b", objects: "a b", deleteExcluded: true, want: "skip a, delete a excluded, compare b"},
		{name: "link is never deleted", files: "a!link b", objects: "a b", deleteExcluded: true, want: "skip a, protect a skipped, compare b"},
		{name: "unreadable", files: "a! b/! c", objects: "a b/x c", want: "fail a, protect a skipped, fail b/, protect b/x skipped, compare c"},
		{name: "excluded", files: "a", objects: "a xa", want: "compare a, protect xa excluded"},
		{name: "excluded and deleted", files: "a", objects: "a xa", deleteExcluded: true, want: "compare a, delete xa excluded"},
		{name: "temporary is never deleted", files: "a", objects: "a t1", deleteExcluded: true, want: "compare a, protect t1 temporary"},
		{name: "missing bucket", files: "a", objects: "ERROR", err: session.ErrNotFound},
		{name: "listing fails later", files: "a b", objects: "a ERROR", want: "compare a", err: session.ErrNotFound},
		{name: "files out of order", files: "b a", want: "upload b", err: errors.New("the files are not in the order")},
		{name: "objects out of order", objects: "b a", want: "delete b", err: session.ErrProtocol},
		{name: "object twice", objects: "b b", want: "delete b", err: session.ErrProtocol},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := rules{skip: c.skip, deleteExcluded: c.deleteExcluded, protect: func(o *session.Object) Reason {
				switch o.Name[0] {
				case 'x':
					return Excluded
				case 't':
					return Temporary
				}
				return NoReason
			}}
			var got []string
			var failed error
			for a, err := range merge(jobsOf(c.files), objectsOf(c.objects), r) {
				if err != nil {
					failed = err
					break
				}
				text := a.Kind.String() + " "
				if a.Kind == Delete || a.Kind == Protect {
					text += a.Object.Name
				} else if text += a.Job.Spec.Object; !a.Job.Listed || a.Job.Object != a.Object {
					t.Errorf("%s: the job is not listed, or has another object", text)
				}
				if a.Reason != NoReason {
					text += " " + a.Reason.String()
				}
				got = append(got, text)
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), c.want)
			}
			if (failed == nil) != (c.err == nil) || failed != nil && !errors.Is(failed, c.err) && !strings.Contains(failed.Error(), c.err.Error()) {
				t.Errorf("error %v, want %v", failed, c.err)
			}
		})
	}
}

// TestMergeKey checks that an object that is not encrypted with a key is replaced if a key is given.
func TestMergeKey(t *testing.T) {
	t.Parallel()
	key, err := session.NewEncryptionKey(make([]byte, 32))
	require.NoError(t, err)
	jobs := func(yield func(upload.Job) bool) {
		for job := range jobsOf("plain sealed") {
			job.Spec.EncryptionKey = key
			if !yield(job) {
				return
			}
		}
	}
	objects := func(yield func(*session.Object, error) bool) {
		for o, err := range objectsOf("plain@1000 sealed@1000") {
			o.HasCRC32C = o.Name == "plain"
			if !yield(o, err) {
				return
			}
		}
	}
	for skip, want := range map[upload.Skip][]Kind{upload.SkipSameTime: {Upload, Keep}, upload.SkipIdentical: {Upload, Compare}} {
		var got []Kind
		for a, err := range merge(jobs, objects, rules{skip: skip}) {
			require.NoError(t, err)
			got = append(got, a.Kind)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v: %v, want %v", skip, got, want)
		}
	}
}

// TestSkippedNames checks that the names of skipped entries are kept as long as they matter, and that
// there are not more of them than the newest name has bytes.
func TestSkippedNames(t *testing.T) {
	t.Parallel()
	var s skippedNames
	for i := range 100_000 {
		s.add(fmt.Sprintf("link-%06d", i), tree.Link)
		if len(s.names) > 4 {
			t.Fatalf("%d names after %d links", len(s.names), i)
		}
	}
	for i := range 500 {
		s.add("m"+strings.Repeat("!", i), tree.Link)
	}
	for i := 499; i >= 0; i-- { // in the order of bytes, the longest name comes first
		if name := "m" + strings.Repeat("!", i); !s.has(name + "/x") {
			t.Fatalf("%d: not protected", i)
		}
	}
	if s.has("m0") || s.has("n") || len(s.names) != 0 {
		t.Errorf("%d names are left", len(s.names))
	}
}

func TestLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text   string
		n, all int64
		want   bool
	}{
		{"50%", 5, 10, true}, {"50%", 6, 10, false}, {"50%", 1, 1, false}, {"100%", 10, 10, true}, {"0%", 1, 10, false},
		{"0", 1, 10, false}, {"3", 3, 3, true}, {"3", 4, 100, false}, {"33%", 1, 3, false}, {"34%", 1, 3, true},
	} {
		l, err := ParseLimit(c.text)
		if err != nil || l.allows(c.n, c.all) != c.want || l.String() != c.text {
			t.Errorf("%s (%v, %v): %d of %d: want %v", c.text, l, err, c.n, c.all, c.want)
		}
	}
	if l := (Limit{}); l.String() != "50%" || !l.allows(5, 10) || l.allows(6, 10) {
		t.Errorf("the default is %v", l)
	}
	for _, text := range []string{"", "%", "-1", "101%", "1.5", "x", "10 %"} {
		if l, err := ParseLimit(text); err == nil {
			t.Errorf("%q is %v", text, l)
		}
	}
}

func TestSpool(t *testing.T) {
	t.Parallel()
	s := newSpool("bkt", t.TempDir())
	defer s.close()
	const n = 100_000 // more than 8 MiB
	long := strings.Repeat("x", 100)
	for i := range n {
		o := &session.Object{Name: fmt.Sprintf("%s%06d", long, i), Generation: int64(i + 1), Size: int64(i)}
		require.NoError(t, s.add(o, Reason(i%3)))
	}
	i := 0
	for e, err := range s.entries() {
		require.NoError(t, err)
		want := session.Object{Bucket: "bkt", Name: fmt.Sprintf("%s%06d", long, i), Generation: int64(i + 1), Size: int64(i)}
		if e.object.Name != want.Name || e.object.Bucket != want.Bucket || e.object.Generation != want.Generation || e.object.Size != want.Size || e.reason != Reason(i%3) {
			t.Fatalf("%d: %+v", i, e)
		}
		i++
	}
	if i != n || s.n != n {
		t.Errorf("%d objects", i)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	var names []string
	for k := range Kind(len(kindNames)) {
		names = append(names, k.String())
	}
	for r := range Reason(len(reasonNames)) {
		names = append(names, r.String())
	}
	slices.Sort(names)
	if len(slices.Compact(names)) != len(kindNames)+len(reasonNames) {
		t.Errorf("names: %q", names)
	}
}
