package session

// maxRestarts bounds the new sessions of an upload. Each starts from byte 0, after
// the old session was lost or its bytes were damaged.
const maxRestarts = 3

// State is the state of an upload between two exchanges.
//
// Invariant: 0 <= Committed <= Sent, and Sent <= Size if Size is known. Committed is
// the offset of the service and never decreases within a session. Sent is the highest
// offset whose bytes were ever handed to the network in this session, by this process
// or an earlier one.
type State struct {
	Size       int64 // of the object; -1 while it is not known
	Committed  int64
	Sent       int64
	Replayable bool // the source can be read again from byte 0

	Failures int // consecutive failures without newly committed bytes
	Restarts int // sessions that were lost and replaced

	// MayExist reports that a request that finishes the object was sent, and
	// its outcome is not known. The object may exist.
	MayExist bool

	// Adopted reports that an earlier process opened the session. It may have sent more
	// bytes than Sent if it could not save the last value.
	Adopted bool

	// Rejected reports that an earlier process stopped because the service
	// refused data at offset RejectedAt, in a session that still existed.
	Rejected   bool
	RejectedAt int64

	// Unconditional reports that the caller set no precondition for the insert. Such a
	// request is not repeated before the destination has been checked.
	// https://cloud.google.com/storage/docs/retry-strategy#idempotency
	Unconditional bool

	// Temporary reports that only this upload writes the object. A precondition is
	// then not the caller's, and no user cancels the session.
	Temporary bool

	trouble
	beyond    bool    // the last reply claimed bytes that were never sent
	rangeless bool    // the last reply had no Range
	suspect   int     // 200, 404 or 400: a query must confirm such an answer; 0 if none
	doubt     Reply   // the 400 to be confirmed, or the reply that made a check of the destination necessary
	finished  *Object // of a session that an earlier process finished; nil until a query returns it
	deleted   bool    // the service answered that this object does not exist; a second answer must confirm it
	guarded   bool    // an insert carries the precondition ifGenerationMatch=guard
	guard     int64
}

// Guard returns the generation that the existing object must have when the object is
// inserted again; 0 means that no object must exist. ok is false if there is no such
// condition.
func (s State) Guard() (generation int64, ok bool) { return s.guard, s.guarded }

// Guarded returns s with a [State.Guard] from the first insert on: the generation of the object
// at the destination when the driver read it, or 0 if there was none. It is for an insert
// without a precondition of the caller. If the outcome of the insert is not known, an object
// with that generation shows that it was not executed.
func (s State) Guarded(generation int64) State {
	s.guarded, s.guard = true, generation
	return s
}
