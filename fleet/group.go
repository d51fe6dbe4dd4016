package fleet

import (
	"hash/fnv"
	"iter"

	"gcsup/upload"
)

const (
	// smallFile is the size up to which a file shares its task with others. It goes in
	// one request, and nothing is saved of it.
	smallFile = 1 << 20

	// groupBytes bounds the sum of the sizes of a group, which a worker may have to
	// read again if another one began with it.
	groupBytes = 256 << 20

	// groupText bounds the paths and names of a group, so that its message fits.
	groupText = 256 << 10

	// groupCut is the mean number of files after which a name ends a group.
	groupCut = 512
)

// listed is one file of a submit, and the job that it was in the walk.
type listed struct {
	file File
	job  upload.Job
}

// groups yields the files of a tree as the files of its tasks: a large file alone, small
// ones together. The files must be sorted by object.
//
// Where a group ends depends on the names and sizes in it only. If a file is added to
// the tree, or removed, the groups far from it stay the same, and so do their IDs. A
// group ends after a name whose hash is 0 modulo groupCut, or when it is full.
func groups(files iter.Seq[listed]) iter.Seq[[]listed] {
	return func(yield func([]listed) bool) {
		var group []listed
		var bytes, text int64
		flush := func() bool {
			full := group
			group, bytes, text = nil, 0, 0
			return len(full) == 0 || yield(full)
		}
		for f := range files {
			if f.file.Size > smallFile {
				// The group continues after it: the number of files between two names
				// with a hash of 0 does not depend on large files.
				if !yield([]listed{f}) {
					return
				}
				continue
			}
			size := textSize(f.file.Path) + textSize(f.file.Object)
			if len(group) == maxFiles || bytes+f.file.Size > groupBytes || len(group) > 0 && text+size > groupText {
				if !flush() {
					return
				}
			}
			group = append(group, f)
			bytes, text = bytes+f.file.Size, text+size
			if endsGroup(f.file.Object) && !flush() {
				return
			}
		}
		flush()
	}
}

// textSize returns the greatest length of s in JSON.
func textSize(s string) int64 {
	n := int64(len(s))
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x80 {
			n += 5 // \u0000; a byte of U+2028 needs less
		}
	}
	return n
}

// endsGroup reports whether a group ends after an object.
func endsGroup(object string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(object))
	sum := h.Sum32()
	return (sum^sum>>16)%groupCut == 0
}
