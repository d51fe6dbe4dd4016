// Package session implements Cloud Storage's resumable upload protocol, one
// HTTP exchange at a time. It also decides the next step after each reply.
//
// See https://cloud.google.com/storage/docs/resumable-uploads and
// https://cloud.google.com/storage/docs/performing-resumable-uploads for the
// protocol.
//
// Most programs should use package upload. Use this package to drive a session
// step by step, or to save uploads in your own database (see [Store]).
//
// # The two calls
//
// A driver alternates two calls: a method of [Client], which makes one
// exchange, and [Decide], which returns the next step.
//
// The methods of Client are [Client.Start], [Client.Put], [Client.Query],
// [Client.Finalize] and [Client.Cancel]. [Client.Insert] uploads a small object
// in one request, and [Client.Stat] reads the metadata of an object. None of
// them loops, waits or retries. Each returns a [Reply], even if no reply
// arrived.
//
// # Decisions
//
// Decide is a pure function from ([State], [Reply]) to (State, [Action]). It
// has no clock and does no I/O, so that a test can check any sequence of
// replies. Its documentation has the decision table.
//
// # Saved uploads
//
// A [Token] has all that another process needs to resume an upload. A [Store]
// saves Tokens. [OpenDir] returns a Store in a directory. Package storetest checks a
// Store of your own.
//
// # Guarantees
//   - The server's committed offset is authoritative: 0 <= Committed <= Sent <=
//     Size. Committed never decreases within a session.
//   - After an ambiguous failure the next request is a query, never data.
//   - The session URI is a bearer secret. A [URI] redacts itself when printed,
//     logged or marshaled. Only [Encode] writes it. A URI from a store is
//     refused unless it belongs to the configured endpoint and bucket. The URI
//     is also the URL of each request: wrap a transport that records URLs, such
//     as that of OpenTelemetry, with [Traced].
//   - Load and List of a Store change nothing. Only the holder of the upload's
//     lock sets a damaged Token aside. A Token of a newer program is kept.
//
// # Errors
//
// The error of an [Action] is an [Error], which wraps a sentinel error and the
// cause. The errors of a Store wrap sentinel errors too. The table at
// [ErrInvalid] lists them all, and what to do. Check them with [errors.Is].
package session
