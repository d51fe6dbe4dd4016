package upload

import (
	"time"

	"gcsup/chunk"
	"gcsup/session"
)

// Result describes an upload. Every call returns one, even if it fails. Object is
// then nil, and the other fields show the progress.
type Result struct {
	ID     string // of the saved upload; "" for a stream that is not in a spool, or without a store
	Path   string // of the source; "" for a stream
	Spec   Spec
	Object *session.Object // as the service described it: generation, size, CRC32C; of [Uploader.Compare], the object at the destination

	Size        int64          // of the source, in bytes; -1 if it was never known
	Source      chunk.Identity // of the file when its bytes were read; without a change time if a change may not be detectable; zero if it was not opened
	ResumedFrom int64          // the committed offset at which this call continued an earlier one
	Resumed     bool           // this call continued the session of an earlier one
	Resumable   bool           // the upload failed and is saved: the same call, or Resume, continues it when the cause is removed, such as another process that holds it
	Skipped     Skip           // the rule of a batch, or of CallOptions, by which the file was not uploaded; Object is the existing object, if it was read
	Planned     bool           // the file would have been uploaded, see [BatchOptions].DryRun
	Difference  Difference     // of [Uploader.Compare]: how Object differs from the file

	SourceRemoved bool  // the file was removed, see [CallOptions].RemoveSource
	SourceKept    error // why RemoveSource did not remove the file, although its object exists; nil if the bytes of a skipped file were not compared

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
