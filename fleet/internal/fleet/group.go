package fleet

import (
	"hash/fnv"
	"iter"

	"gcsup/upload"
)

const (
	// smallFile is the maximum size of a file that shares its task with others. It is sent in
	// one request and not saved.
	smallFile = 1 << 20

	// groupBytes bounds the size of a group in bytes, because a worker may have to read
	// all of it again if the previous one died.
	groupBytes = 256 << 20

	// groupText bounds the paths and names of a group in bytes of JSON, so that its message
	// fits.
	groupText = 256 << 10

	// groupCut is the mean number of files after which endsGroup ends a group.
	groupCut = 512
)

// listed is one file of a submission and its job from the walk.
type listed struct {
	file File
	job  upload.Job
}

// groups divides the files of a tree into tasks: each large file alone, and small ones in groups. The
// files must be sorted by object.
//
// A group ends after a name whose hash is 0 modulo groupCut, or when it is full. Its end therefore
// depends only on the names and sizes in it. If a file is added to the tree or removed, most
// other groups and their IDs stay the same.
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
				// The group continues after a large file, so that groups do not depend
				// on large files.
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

// textSize returns an upper bound of the length of s in JSON, in bytes.
func textSize(s string) int64 {
	n := int64(len(s))
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x80 {
			n += 5 // \u0000; a byte of U+2028 needs less
		}
	}
	return n
}

// endsGroup reports whether a group ends after this object, by the hash of its name.
func endsGroup(object string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(object))
	sum := h.Sum32()
	return (sum^sum>>16)%groupCut == 0
}
