package upload

import (
	"time"

	"gcsup/chunk"
	"gcsup/session"
)

// Result describes what an upload did. Every call returns one, even if it fails.
// Then Object is nil, and the other fields show how far it came.
type Result struct {
	ID     string // of the saved upload; "" for a stream or without a store
	Path   string // of the source; "" for a stream
	Spec   Spec
	Object *session.Object // as the service described it: generation, size, CRC32C

	Size        int64          // of the source, in bytes; -1 if it was never known
	Source      chunk.Identity // of the file with the bytes that were read; without a change time if they may have changed without a trace; zero if it was not opened
	ResumedFrom int64          // the committed offset at which this call continued an earlier one
	Resumed     bool           // this call continued the session of an earlier one
	Resumable   bool           // the upload failed and is saved: the same call, or Resume, continues it
	Skipped     Skip           // the rule of a batch by which the file was not uploaded; Object is what exists, if it was seen
	Planned     bool           // the file would have been uploaded, see [BatchOptions].DryRun

	Parts *PartsResult // nil unless this call sent the file in parts

	BytesSent   int64 // object bytes handed to the network, repeats included
	BytesResent int64 // those of them that this call had handed over before
	BytesReread int64 // bytes of the source that were read again only for their checksum
	Requests    int   // HTTP requests of every kind
	Retries     int   // requests repeated, or replaced by a query, after a failure
	Waited      time.Duration
	Elapsed     time.Duration
}

// PartsResult describes how fast a file was sent in parts. The rates count only finished parts, each
// from the moment at which it got a connection until the service had it.
type PartsResult struct {
	Count       int   // number of parts
	Connections int   // the number of connections at a time that carried the most bytes
	Rate        int64 // bytes per second of these connections together; 0 if it is not known
	RateOfOne   int64 // mean bytes per second of a single connection over the whole time; 0 if it is not known
}
