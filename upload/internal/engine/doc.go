// Package engine sends one range of bytes to one object of the service, until the object exists.
// It knows no files, saved uploads, parts of a file or batches.
//
// A [Requester] makes the requests of an upload. It has what outlives a session: the budget of
// retries, the size of the next request, the position. A [Transfer] adds the bytes and the
// object. A [Conversation] is what follows the replies to one kind of request. Call
// [Transfer.Drive] with one that makes an object: a [Run], which sends the bytes through a
// session, or an [Insertion], which sends them in a single request. Call [Requester.Ask] for one
// request that is repeated until its outcome is known.
//
// The caller gives an [Uplink], with the client and the limits. The engine reports what happens
// to the [Notes] of the Uplink, and the state of a session to a [Record]. If there is a [Permit],
// it makes no request without it.
//
// # Errors
//
// A refusal, and a failure after all retries, is a [*session.Error]. If the context is done, the
// error is an [*Interruption]. If the session no longer exists, it is a [*SessionLost], with the
// state for the next Run.
package engine
