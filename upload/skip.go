package upload

import (
	"fmt"
	"maps"

	"gcsup/session"
	"gcsup/upload/internal/batch"
)

// A Skip is a rule by which a batch, or a call, leaves out files whose object exists:
// [BatchOptions], [CallOptions]. Its String method returns the rule in a few words.
type Skip int

// The rules. Each compares the file with the object that has the name of the
// destination.
const (
	SkipNothing   Skip = iota // upload every file
	SkipExisting              // skip a file whose object exists, and never replace an object
	SkipIdentical             // skip a file whose object has its size, CRC32C and encryption key; the file is read

	// SkipSameTime skips a file whose object has its size and, in whole seconds,
	// its modification time under [session.FileModTimeKey]. If the file has an encryption
	// key, an object without one is replaced. An upload writes that key,
	// unless the file was modified less than two seconds before. If the object does
	// not have the key, or if the file was modified less than two seconds before the
	// object was created, the CRC32C is compared as with SkipIdentical.
	SkipSameTime

	// SkipSameContent is SkipIdentical, except that the object determines whether
	// the file is compressed for the comparison: [Spec].Gzip of the job is
	// replaced.
	SkipSameContent
)

var skipNames = [...]string{
	SkipNothing: "not skipped", SkipExisting: "exists", SkipIdentical: "identical", SkipSameTime: "same size and time",
	SkipSameContent: "same content",
}

func (s Skip) String() string { return nameOf(int(s), skipNames[:], "Skip") }

// nameOf returns the name of a value, or its number if it has none.
func nameOf(value int, names []string, kind string) string {
	if value < 0 || value >= len(names) {
		return fmt.Sprintf("%s(%d)", kind, value)
	}
	return names[value]
}

// sameMTime returns want with the modification time in the metadata of saved, or
// without one if it has none. The time is not an option of the caller. A change of
// the source changes its identity, and an object without the time is compared by its
// CRC32C.
func sameMTime(want, saved Spec) Spec {
	want.Metadata = maps.Clone(want.Metadata)
	delete(want.Metadata, session.FileModTimeKey)
	if then, ok := saved.Metadata[session.FileModTimeKey]; ok && want.Metadata != nil {
		want.Metadata[session.FileModTimeKey] = then
	}
	if len(want.Metadata) == 0 {
		want.Metadata = nil // the caller gave none
	}
	return want
}

// unread reports whether a job is skipped without opening its file, because the
// listings of the file and of its object suffice.
func (s Skip) unread(job Job) bool {
	switch {
	case !job.Listed || job.Object == nil:
		return false
	case s == SkipExisting:
		return true
	case s == SkipSameTime && !job.ModTime.IsZero():
		if !job.Spec.EncryptionKey.IsZero() && job.Object.HasCRC32C {
			return false // the object is not encrypted with a key, see skip
		}
		return batch.CompareTime(job.Spec.Gzip, job.Size, job.ModTime, job.Object) == batch.SameTime
	}
	return false
}
