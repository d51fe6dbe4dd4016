package upload

import (
	"fmt"
	"maps"
	"time"

	"gcsup/chunk"
	"gcsup/internal/objectmeta"
	"gcsup/session"
)

// Spec describes the object to make. Bucket and Object are required.
type Spec = session.Spec

// Result describes an upload. Every call returns one, even if it fails. Object is
// then nil, and the other fields show the progress.
type Result struct {
	ID   string // of the saved upload; "" for a stream that is not in a spool, or without a store
	Path string // of the source; "" for a stream
	Spec Spec

	// Object is what the service described: generation, size, CRC32C, and more without Options.BriefObject. For
	// [Uploader.Compare], it is the object at the destination.
	Object *session.Object

	// Unverified is why the CRC32C of Object was not compared with that of the source, although the object was made: the
	// reply did not have it, and the object cannot be read. It is nil if they were compared.
	Unverified error

	// Size is the size of the source in bytes, -1 if it was never known. Source describes the file
	// when its bytes were read. It is zero if the file was not opened. It has no change time if
	// the file could change without a change of its times.
	Size   int64
	Source chunk.Identity

	// Resumed reports that this call continued the session of an earlier one, at the committed
	// offset ResumedFrom. Resumable reports that the upload failed and is saved: the same call, or
	// Resume, continues it when the cause is removed.
	Resumed     bool
	ResumedFrom int64
	Resumable   bool

	// Skipped is the rule of a batch, or of CallOptions, by which the file was not uploaded. Object
	// is then the existing object, if it was read.
	Skipped    Skip
	Planned    bool       // the file would have been uploaded, see [BatchOptions].DryRun
	Difference Difference // of [Uploader.Compare]: how Object differs from the file

	// SourceRemoved reports that the file was removed, see [CallOptions].RemoveSource. SourceKept is
	// why it was not, although its object exists. It is nil if the bytes of a skipped file were not
	// compared.
	SourceRemoved bool
	SourceKept    error

	Leftover error // what could not be removed from the service, and why; nil if nothing is left. See SavedUpload.ToRemove

	Parts *PartsResult // nil unless this call sent the file in parts

	BytesSent   int64         // object bytes handed to the network, repeats included
	BytesResent int64         // the part of BytesSent that this call had sent before
	BytesReread int64         // bytes of the source that were read again only for their checksum
	Requests    int           // HTTP requests of every kind
	Retries     int           // requests repeated, or replaced by a query, after a failure
	Waited      time.Duration // before retries
	Throttled   time.Duration // how long requests waited for the rate of their bucket, see [RequestRates]
	Elapsed     time.Duration
}

// PartsResult describes the speed of a file that was sent in parts. The rates count
// only finished parts, each from the moment at which it got a connection until the
// service had all of it.
type PartsResult struct {
	Count       int   // number of parts
	Connections int   // the number of concurrent connections over which most bytes were sent
	Rate        int64 // bytes per second of these connections together; 0 if it is not known
	RateOfOne   int64 // mean bytes per second of a single connection over the whole time; 0 if it is not known
}

// A Difference is the outcome of a comparison of a file with the object at its destination.
type Difference int

// The outcomes.
const (
	NotCompared     Difference = iota // the Result is not of [Uploader.Compare], or the comparison failed
	ObjectEqual                       // the object has the size, CRC32C and encryption key of the file
	ObjectMissing                     // there is no object
	SizeDiffers                       // the object has another size, or was compressed from another one
	ContentDiffers                    // the object has the same size, but another CRC32C or another encryption key
	ChecksumMissing                   // the object has the same size, but no CRC32C to compare with
)

var differenceNames = [...]string{
	NotCompared: "not compared", ObjectEqual: "equal", ObjectMissing: "missing", SizeDiffers: "size differs",
	ContentDiffers: "content differs", ChecksumMissing: "checksum missing",
}

func (d Difference) String() string { return nameOf(int(d), differenceNames[:], "Difference") }

// A Skip is a rule by which a batch, or a call, leaves out files whose object exists:
// [BatchOptions], [CallOptions]. Its String method returns the rule in a few words.
type Skip int

// The rules. Each compares the file with the object that has the name of the
// destination.
const (
	SkipNothing   Skip = iota // upload every file
	SkipExisting              // skip a file whose object exists, and never replace an object
	SkipIdentical             // skip a file whose object has its size, CRC32C and encryption key; the file is read

	// SkipSameTime skips a file whose object has its size and, in whole seconds, its
	// modification time under goog-reserved-file-mtime. If the file has an encryption key,
	// an object without one is replaced. An upload writes goog-reserved-file-mtime, unless
	// the file was modified in the two seconds before the upload. If the object does not
	// have it, or if the file was modified less than two seconds before the object was
	// created, the CRC32C is compared as with SkipIdentical.
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
	delete(want.Metadata, objectmeta.FileModTime)
	if then, ok := saved.Metadata[objectmeta.FileModTime]; ok && want.Metadata != nil {
		want.Metadata[objectmeta.FileModTime] = then
	}
	if len(want.Metadata) == 0 {
		want.Metadata = nil // the caller gave none
	}
	return want
}
