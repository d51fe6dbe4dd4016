package fleet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gcsup/upload"
)

// idsOf returns the IDs of the tasks of files, and checks the bounds of each.
func idsOf(t *testing.T, files []File) []string {
	t.Helper()
	var ids []string
	total := 0
	for g := range groups(func(yield func(listed) bool) {
		for _, f := range files {
			if !yield(listed{file: f}) {
				return
			}
		}
	}) {
		task := &Task{V: 1, Settings: upload.Spec{Bucket: "my-bucket"}}
		for _, f := range g {
			task.Files = append(task.Files, f.file)
		}
		if _, err := task.encode(); err != nil {
			t.Fatal(err)
		}
		if n := len(task.Files); n > 1 && (n > maxFiles || task.Bytes() > groupBytes || slices.ContainsFunc(task.Files, func(f File) bool { return f.Size > smallFile })) {
			t.Fatalf("a group has %d files of %d bytes", n, task.Bytes())
		}
		total += len(task.Files)
		ids = append(ids, task.ID())
	}
	if total != len(files) {
		t.Fatalf("the tasks have %d files, want %d", total, len(files))
	}
	return ids
}

func someFiles(n int, size int64) (files []File) {
	for i := range n {
		name := fmt.Sprintf("dir-%02d/file-%06d", i/1000, i)
		files = append(files, File{Path: "/data/" + name, Object: name, Size: size})
	}
	return files
}

// TestGroupsAreStable checks that a change of the tree changes few tasks.
func TestGroupsAreStable(t *testing.T) {
	files := someFiles(20_000, 1000)
	before := idsOf(t, files)
	if len(before) < 20 || len(before) > 200 {
		t.Errorf("20,000 files are %d tasks", len(before))
	}
	if !slices.Equal(before, idsOf(t, files)) {
		t.Error("the same files make different tasks")
	}
	added := slices.Insert(slices.Clone(files), 9_999, File{Path: "/data/x", Object: files[9_998].Object + "x", Size: 5})
	large := slices.Clone(files)
	large[5_000].Size = 1 << 30
	for name, changed := range map[string][]File{"one more": added, "one fewer": slices.Delete(slices.Clone(files), 7_000, 7_001), "one is large": large} {
		fresh := 0
		for _, id := range idsOf(t, changed) {
			if !slices.Contains(before, id) {
				fresh++
			}
		}
		if fresh == 0 || fresh > 4 {
			t.Errorf("%s: %d new tasks, want 1 to 4", name, fresh)
		}
	}
}

// TestGroupsFit checks that every group makes a message that is small enough.
func TestGroupsFit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, piece := range map[string]string{"plain": "abcdefgh", "escaped": "\x01\"\\\x7f", "wide": "\u2028é"} {
		var files []File
		for i := range 5_000 {
			object := fmt.Sprintf("%06d", i) + strings.Repeat(piece, r.IntN(100))
			files = append(files, File{Path: "/" + object + strings.Repeat("/d", 1000), Object: object, Size: r.Int64N(2 << 20)})
		}
		if ids := idsOf(t, files); len(ids) == 0 {
			t.Errorf("%s: no tasks", name)
		}
	}
	idsOf(t, []File{{Path: "/" + strings.Repeat("\x01", maxPath-1), Object: strings.Repeat("\x01", 1024)}})
}
