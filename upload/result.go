package upload

import (
	"time"

	"gcsup/session"
)

// Result says what an upload did. Every call gives one, also one that fails:
// then Object is nil, and the rest tells how far it came.
type Result struct {
	ID     string // of the saved upload; "" for a stream or without a store
	Spec   Spec
	Object *session.Object // as the service describes it: generation, size, CRC32C

	Size        int64 // of the source, -1 when it was never known
	ResumedFrom int64 // the committed offset at which this call took over
	Resumed     bool  // an earlier process's session was continued
	Resumable   bool  // it failed, and is saved: the same call again, or Resume, goes on

	BytesSent   int64 // object bytes handed to the network, repeats included
	BytesResent int64 // those of them that this call had handed over before
	BytesReread int64 // bytes of the source that were read again only for their checksum
	Requests    int   // HTTP requests of every kind
	Retries     int   // requests repeated, or replaced by a query, after a failure
	Waited      time.Duration
	Elapsed     time.Duration
}
