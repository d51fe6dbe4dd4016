// Package state saves uploads, so that another process can resume them.
//
// An [Upload] has all that is needed to resume one upload. A [Store] keeps saved
// uploads. [OpenDir] returns a Store in a directory. Package bucketstore has a Store in
// a bucket, which machines share. Package storetest checks a Store of your own, which
// uses [Encode] and [Decode].
//
// # Resuming an upload
//
// A program that resumes an upload calls [Acquire] and then Load of the [Lease]. Before
// the first request with a URI of the saved upload, it calls [Adopt]:
//
//	lease, err := state.Acquire(ctx, store, id)
//	...
//	saved, err := lease.Load(ctx)
//	...
//	err = state.Adopt(client, saved)
//	...
//	err = lease.Release(ctx, saved)
//
// Package upload does this for its option Store.
//
// # Guarantees
//   - At most one process works on an upload. The others get a [HeldError].
//   - After Save of a [Dir] has returned nil, the saved upload survives a power loss. A process
//     that dies at any time leaves the old saved upload or the new one.
//   - Load and List of a Store change nothing. Only the holder of the upload's
//     lock sets a damaged saved upload aside. A saved upload of a newer program is kept.
//   - Only Encode writes session URIs, which are secrets. A saved upload and its parts redact
//     them when printed or logged, and a saved upload cannot be marshaled in another way. Adopt
//     refuses a URI of another endpoint or bucket.
//
// # Errors
//
// The table at [ErrNotFound] lists the sentinel errors, and what to do.
package state
