package upload

import (
	"time"

	"gcsup/chunk"
	"gcsup/session"
)

// Result describes an upload. Every call returns one, even if it fails. Object is
// then nil, and the other fields show the progress.
type Result struct {
	ID   string // of the saved upload; "" for a stream that is not in a spool, or without a store
	Path string // of the source; "" for a stream
	Spec Spec

	// Object is what the service described: generation, size, CRC32C. Of [Uploader.Compare], it is
	// the object at the destination.
	Object *session.Object

	// Unverified is why the CRC32C of Object was not compared with that of the source, although the object was made: the
	// reply did not have it, and the object cannot be read. It is nil if they were compared.
	Unverified error

	// Size is that of the source, in bytes, -1 if it was never known. Source describes the file when
	// its bytes were read. It is zero if the file was not opened, and has no change time if a change
	// may not be detectable.
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
	Paced       time.Duration // how long requests waited for the rate of their bucket, see [RequestRates]
	Elapsed     time.Duration
}

// PartsResult describes the speed of a file that was sent in parts. The rates count
// only finished parts, each from the moment at which it got a connection until the
// service had all of it.
type PartsResult struct {
	Count       int   // number of parts
	Connections int   // the number of connections at a time that carried the most bytes
	Rate        int64 // bytes per second of these connections together; 0 if it is not known
	RateOfOne   int64 // mean bytes per second of a single connection over the whole time; 0 if it is not known
}
