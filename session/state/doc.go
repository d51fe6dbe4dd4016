// Package state saves uploads, so that another process can resume them.
//
// A [Token] has all that is needed to resume one upload. A [Store] saves Tokens.
// [OpenDir] returns a Store in a directory. Package bucketstore has a Store in a bucket,
// which machines share. Package storetest checks a Store of your own, which uses
// [Encode] and [Decode].
//
// # The two calls
//
// A program that resumes an upload calls [Acquire] and then Load of the [Lease]. Before
// the first request with a URI of the Token, it calls [Adopt]:
//
//	lease, err := state.Acquire(ctx, store, id)
//	...
//	token, err := lease.Load(ctx)
//	...
//	err = state.Adopt(client, token)
//	...
//	err = lease.Release(ctx, token)
//
// Package upload does this for its option Store.
//
// # Guarantees
//   - At most one process works on an upload. The others get a [HeldError].
//   - After Save of a [Dir] has returned nil, the Token survives a power loss. A process
//     that dies at any time leaves the old Token or the new one.
//   - Load and List of a Store change nothing. Only the holder of the upload's
//     lock sets a damaged Token aside. A Token of a newer program is kept.
//   - Only Encode writes session URIs, which are secrets. A Token and its parts redact
//     them when printed or logged, and a Token cannot be marshaled in another way. Adopt
//     refuses a URI of another endpoint or bucket.
//
// # Errors
//
// The table at [ErrNoToken] lists the sentinel errors, and what to do.
package state
